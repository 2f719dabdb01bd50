// A mutant is killed by its first failure, so no smaller history is looked for.

import fc from 'fast-check'

fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true })
