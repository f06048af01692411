// What Tollgate is measured against: a Worker that forwards a request as it came and returns the answer as it comes.
export default {
  fetch(request, env) {
    const { pathname } = new URL(request.url);
    return fetch(new Request(env.UPSTREAM + pathname, request));
  },
};
