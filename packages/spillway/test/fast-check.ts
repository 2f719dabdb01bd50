/**
 * fast-check as the tests use it: the same histories in every run, so that a red run is the fault of
 * the change it tested. `SPILLWAY_SEED` tries others.
 */
import fc from 'fast-check'

const SEED = Number(process.env.SPILLWAY_SEED ?? 20_301)

fc.configureGlobal({ seed: SEED })

export { fc }
