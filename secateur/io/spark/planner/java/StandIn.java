package secateur;

/** What behaves like something else. */
public interface StandIn {
    Object standsFor();
}
