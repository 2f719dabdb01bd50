// The public API as one reviewed file, packages/spillway/api.md: every export of every subpath with
// its signature, read from the built declarations. A change to the API is then a line in a diff.
//
//   npm run api      writes the file
//   --check          fails when the file is not what the code exports, or an export of any package has no JSDoc
//                    comment, an optional option no default, or a numeric option no unit or range

import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { PACKAGES } from './package-rules.mjs'
import { root, tools } from './run-command.mjs'
import { setupOrExit } from './setup.mjs'

const PACKAGE = 'packages/spillway'
const LISTING = `${PACKAGE}/api.md`

const checking = process.argv.includes('--check')
// `npm run check` has just built; on its own this command builds first, so that the list is current.
await setupOrExit({ build: checking ? [] : [PACKAGE] })
const { describeExports } = await import('./api-exports.mjs')
const { missingComments } = await import('./api-comments.mjs')
const { optionProblems } = await import('./api-options.mjs')

try {
  const listing = createListing(publicEntries(PACKAGE))
  if (checking) {
    check(listing)
    for (const name of PACKAGES) checkComments(publicEntries(`packages/${name}`))
  } else writeFileSync(join(root, LISTING), listing)
} catch (error) {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}

function publicEntries(folder) {
  const manifest = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
  const entries = Object.entries(manifest.exports)
    // Other packages of this repository use `internal`. It is unstable, so its names are not reviewed here.
    .filter(([subpath, target]) => typeof target === 'object' && subpath !== './internal')
    .map(([subpath, { types }]) => ({
      subpath: subpath.replace('.', manifest.name),
      file: join(root, folder, types),
    }))
  for (const { subpath, file } of entries) {
    if (!existsSync(file)) throw new Error(`${subpath}: ${relative(root, file)} is not built`)
  }
  return entries
}

function createListing(entries) {
  const sections = describeExports(entries).map(
    ({ subpath, declarations }) => `## ${subpath}\n\n\`\`\`ts\n${format(declarations)}\`\`\`\n`,
  )
  const intro =
    'Everything the package exports, without the unstable `spillway/internal`. Written by `npm run api`; review it like code.\n'
  return `# Public API\n\n${intro}\n${sections.join('\n')}`
}

/** In the repository's own style, so that signatures read like the sources. */
function format(declarations) {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [tools.biome, 'format', `--stdin-file-path=${PACKAGE}/api.d.ts`],
    { cwd: root, input: inOrder(declarations.join('\n\n')), encoding: 'utf8' },
  )
  if (status !== 0) throw new Error(`the listing could not be formatted:\n${stderr}`)
  return stdout.replace(/^export (declare )?/gm, '')
}

/** The order of a union's members in the compiler's output depends on earlier builds, so they are sorted. */
function inOrder(text) {
  return text.replace(/(["'])[\w-]+\1(?: \| (["'])[\w-]+\2)+/g, (union) =>
    union.split(' | ').sort().join(' | '),
  )
}

function checkComments(entries) {
  const missing = missingComments(entries).map((name) => `${name}: no JSDoc comment`)
  const problems = [...missing, ...optionProblems(entries)]
  if (problems.length === 0) return
  process.stderr.write(`${problems.join('\n')}\n`)
  process.stderr.write('Say what each option is, its unit, default and range.\n')
  process.exitCode = 1
}

function check(listing) {
  const file = join(root, LISTING)
  if (existsSync(file) && readFileSync(file, 'utf8') === listing) return
  process.stderr.write(diffWith(file, listing))
  process.stderr.write(`${LISTING} is not what the code exports. If the change is meant, `)
  process.stderr.write('run npm run api and commit the file.\n')
  process.exitCode = 1
}

function diffWith(file, listing) {
  if (!existsSync(file)) return ''
  const folder = mkdtempSync(join(tmpdir(), 'api-'))
  const actual = join(folder, 'actual.md')
  writeFileSync(actual, listing)
  const { stdout } = spawnSync('git', ['diff', '--no-index', '-U2', '--', file, actual], {
    encoding: 'utf8',
  })
  rmSync(folder, { recursive: true })
  // The four header lines name temporary files.
  return stdout ? `${stdout.split('\n').slice(4).join('\n')}\n` : ''
}
