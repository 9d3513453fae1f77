package secateur;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import org.apache.spark.sql.connector.read.InputPartition;

/** Access to members that are not public. It names no class of Iceberg's: all sessions use it. */
final class Reflected {
    static Object call(Object target, String name) throws Exception {
        for (Class each = target.getClass(); each != null; each = each.getSuperclass()) {
            Method[] methods = each.getDeclaredMethods();
            for (int i = 0; i < methods.length; i++) {
                if (!methods[i].getName().equals(name) || methods[i].getParameterTypes().length > 0) continue;
                methods[i].setAccessible(true);
                return methods[i].invoke(target, new Object[0]);
            }
        }
        throw new NoSuchMethodException(name);
    }

    /** Whether there is such a method, which `call` would call. */
    static boolean has(Object target, String name) {
        for (Class each = target.getClass(); each != null; each = each.getSuperclass()) {
            Method[] methods = each.getDeclaredMethods();
            for (int i = 0; i < methods.length; i++) {
                if (methods[i].getName().equals(name) && methods[i].getParameterTypes().length == 0) return true;
            }
        }
        return false;
    }

    static Field field(Object target, String name) throws Exception {
        for (Class each = target.getClass(); each != null; each = each.getSuperclass()) {
            Field[] fields = each.getDeclaredFields();
            for (int i = 0; i < fields.length; i++) {
                if (!fields[i].getName().equals(name)) continue;
                fields[i].setAccessible(true);
                return fields[i];
            }
        }
        throw new NoSuchFieldException(name);
    }

    static Field taskGroup(InputPartition partition) throws Exception {
        Field field = partition.getClass().getDeclaredField("taskGroup");
        field.setAccessible(true);
        return field;
    }
}
