import java.lang.reflect.Method;

/** Calls methods by their names: those that not every release of the client has. */
final class Calls {
    /** Call the public method of that name which takes these arguments. */
    static Object call(Object target, String name, Object... arguments) throws Exception {
        for (Method method : target.getClass().getMethods()) {
            if (method.getName().equals(name) && takes(method, arguments)) {
                method.setAccessible(true);
                return method.invoke(target, arguments);
            }
        }
        throw new NoSuchMethodException(target.getClass().getName() + "." + name);
    }

    private static boolean takes(Method method, Object[] arguments) {
        Class<?>[] types = method.getParameterTypes();
        boolean fits = types.length == arguments.length;
        for (int index = 0; fits && index < types.length; index++) {
            boolean isLong = types[index] == long.class && arguments[index] instanceof Long;
            fits = isLong || arguments[index] == null || types[index].isInstance(arguments[index]);
        }
        return fits;
    }

    private Calls() {}
}
