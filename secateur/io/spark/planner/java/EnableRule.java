package secateur;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Function;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.SparkStrategy;
import scala.collection.Iterator;

/**
 * A rule of Spark's optimizer: of an indexed relation, only row groups that can match are read.
 *
 * Compiled in the driver by Janino, with the other classes of this directory. Sound: the relation's own list of files
 * decides what is read, except row groups that the index proves to have no match. A relation that is not fully
 * understood stays as it is; so does one for which Python fails or does not answer in time.
 */
public final class EnableRule extends GuardedRule {
    final Asker asker;
    final Events events = new Events();
    final Lookups lookups;
    final Listings listings = new Listings();
    volatile boolean isOn = true; // for sessions that are made later
    final List others = new CopyOnWriteArrayList(); // Functions for other sources, see OtherScans.java

    volatile Function targets; // what transactions of Delta's read of their tables, see DeltaTarget.java; null if unknown
    final List firsts = new CopyOnWriteArrayList(); // Rules of all sessions, before scans are made
    private final List strategies = new CopyOnWriteArrayList(); // SparkStrategies of the sessions with this rule

    /** Parts: a Function of Python, the limit of one call in ms, and how long a lookup of an index is cached, in ms. */
    public EnableRule(List parts) {
        long lookMillis = ((Number) parts.get(2)).longValue();
        asker = new Asker((Function) parts.get(0), ((Number) parts.get(1)).longValue(), lookMillis);
        lookups = new Lookups(asker, events, lookMillis);
    }

    public String ruleName() { return "secateur.EnableRule"; }

    /** Prune scans of another source too. */
    public void alsoAsk(Function other) { others.add(other); }

    /** Prune what transactions of Delta's read too. */
    public void alsoTargets(Function narrowing) { targets = narrowing; }

    /** Have another rule called before Spark makes scans. */
    public void alsoFirst(Rule rule) { firsts.add(rule); }

    /** Have some plans of scans made by a strategy. */
    public void alsoPlan(SparkStrategy strategy) { strategies.add(strategy); }

    /** Know a function of Python's that changes nothing, by the bytes in which both agree. */
    public void alsoKnow(byte[] small, byte[] large) { FixedRdds.UNCHANGED.add(new byte[][] {small, large}); }

    boolean isIn(SparkSession session) {
        for (Iterator all = session.experimental().extraOptimizations().iterator(); all.hasNext();) {
            if (all.next() == this) return true;
        }
        return false;
    }

    /** Prune the queries of this session and of sessions made from it later; `session` is of Spark Classic. */
    public void enable(SparkSession session) {
        List rules = without(session);
        rules.add(this);
        session.experimental().extraOptimizations_$eq(PrunedTable.seq(rules));
        List planned = othersThan(session, strategies);
        planned.addAll(strategies);
        session.experimental().extraStrategies_$eq(PrunedTable.seq(planned));
        isOn = true;
        lookups.forget();
        asker.resume();
    }

    /** Stop pruning the queries of this session, and of sessions made later. */
    public void disable(SparkSession session) {
        isOn = false;
        session.experimental().extraOptimizations_$eq(PrunedTable.seq(without(session)));
        session.experimental().extraStrategies_$eq(PrunedTable.seq(othersThan(session, strategies)));
    }

    /** Give sessions that are made later this rule, from their first query on. */
    public void enableLater(SparkSession session) { session.extensions().injectOptimizerRule(new InNewSessions(this)); }

    /** The session's rules without this one, and without rules of an earlier class with the same name. */
    private static List without(SparkSession session) {
        List rules = new ArrayList();
        for (Iterator all = session.experimental().extraOptimizations().iterator(); all.hasNext();) {
            Rule rule = (Rule) all.next();
            if (!rule.ruleName().equals("secateur.EnableRule")) rules.add(rule);
        }
        return rules;
    }

    /** The session's strategies without some, and without strategies of an earlier class with the same name. */
    private static List othersThan(SparkSession session, List strategies) {
        Set names = new HashSet();
        for (int i = 0; i < strategies.size(); i++) names.add(strategies.get(i).getClass().getName());
        List found = new ArrayList();
        for (Iterator all = session.experimental().extraStrategies().iterator(); all.hasNext();) {
            Object strategy = all.next();
            if (!names.contains(strategy.getClass().getName())) found.add(strategy);
        }
        return found;
    }

    /** Results for the last relations, oldest first: session, location, number of a reply or "", and a text. */
    public List events() { return events.all(); }

    boolean applies(LogicalPlan plan) { return Switches.isOn(); }

    Events warnings() { return events; }

    public LogicalPlan rewritten(LogicalPlan plan) {
        SparkSession session = SparkSession.active();
        return new Rewriting(this, session, TransactionReads.narrowed(this, session, plan)).result();
    }
}
