// Runs the build between two counters: what the Worker asks of its objects, and what the objects write. A put of the
// key-value API and an armed alarm are one written row each. `GET /counted` says how many of each there were.
import { DurableObject } from "cloudflare:workers";
import Build, { UserLimiter as Limiter } from "./index.js";

const counted = { objectRequests: 0, puts: 0, alarms: 0 };

export default {
  fetch(request, env, context) {
    if (new URL(request.url).pathname === "/counted") return Response.json(counted);
    return new Build(context, { ...env, LIMITER: watched(env.LIMITER) }).fetch(request);
  },
};

function watched(namespace) {
  return {
    getByName(name, options) {
      const stub = namespace.getByName(name, options);
      return {
        fetch(url) {
          counted.objectRequests += 1;
          return stub.fetch(url);
        },
      };
    },
  };
}

export class UserLimiter extends DurableObject {
  #object;

  constructor(context, env) {
    super(context, env);
    const { storage } = context;
    const kv = {
      get: (key) => storage.kv.get(key),
      put(key, value) {
        counted.puts += 1;
        storage.kv.put(key, value);
      },
    };
    const setAlarm = (at) => {
      counted.alarms += 1;
      return storage.setAlarm(at);
    };
    this.#object = new Limiter({ storage: { kv, setAlarm, deleteAll: () => storage.deleteAll() } }, env);
  }

  fetch(request) {
    return this.#object.fetch(request);
  }

  alarm() {
    return this.#object.alarm();
  }
}
