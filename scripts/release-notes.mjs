// node scripts/release-notes.mjs X.Y.Z: prints the changes of a version from CHANGELOG.md, for its release on GitHub.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { changesOf } from './release.mjs'
import { root } from './run-command.mjs'

const [version = ''] = process.argv.slice(2)
process.stdout.write(changesOf(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), version))
