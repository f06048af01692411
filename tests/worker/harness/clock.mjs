// The clock of the test runtime. The build reads the time by `Date.now` alone, so replacing that on the global object,
// before the first call comes in, moves the whole product and needs no hook in it.
const platform = Date.now.bind(Date);
let at = null;

Date.now = () => at ?? platform();

export const clock = {
  /** Stands still at `at` milliseconds; null lets the platform's own clock through again. */
  set(moment) {
    at = moment;
  },
  isReal: () => at === null,
  platform,
};
