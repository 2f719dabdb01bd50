/** For programs whose users configure guards in a file. */
export {
  arrayOf,
  bool,
  type Check,
  type Checked,
  type Duration,
  duration,
  either,
  type Fields,
  func,
  having,
  integer,
  number,
  type OptionProblem,
  OptionsError,
  object,
  oneOf,
  optional,
  type Range,
  renamed,
  text,
  together,
  validate,
} from '../core/options/checks.js'
export { readPriority } from '../core/options/priority.js'
export {
  about,
  described,
  describedAs,
  type JsonSchema,
  markOptional,
  schemaOf,
} from '../core/options/schema.js'
export { suggest } from '../core/options/suggest.js'
export { jobQueueFields } from '../guard/jobs/guard-job-queue.js'
export { readGuardOptions } from '../guard/options.js'
