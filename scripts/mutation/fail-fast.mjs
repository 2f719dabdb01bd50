// The first failure kills a mutant, so random histories are not shrunk.

import fc from 'fast-check'

fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true })
