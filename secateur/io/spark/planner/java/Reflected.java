package secateur;

import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import org.apache.iceberg.FileScanTask;
import org.apache.spark.sql.connector.read.InputPartition;

/** Access to members of Iceberg's that are not public. */
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

    static Object part(FileScanTask task, long start, long length) throws Exception {
        Class made = Class.forName(
            "org.apache.iceberg.BaseFileScanTask$SplitScanTask", true, FileScanTask.class.getClassLoader());
        Constructor constructor = made.getDeclaredConstructor(
            new Class[] {Long.TYPE, Long.TYPE, FileScanTask.class});
        constructor.setAccessible(true);
        return constructor.newInstance(new Object[] {Long.valueOf(start), Long.valueOf(length), task});
    }
}
