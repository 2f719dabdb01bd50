/**
 * fast-check as the tests use it: the same histories in every run, so that a failure is caused by
 * the change under test. `SPILLWAY_SEED` selects others.
 */
import fc from 'fast-check'

const SEED = Number(process.env.SPILLWAY_SEED ?? 20_301)

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: SEED })

export { fc }
