// npm run check: all checks of the repository except its tests. CI runs the same command.

import { join } from 'node:path'
import { root, runNode, SKIPPED, tools } from './run-command.mjs'
import { setupOrExit } from './setup.mjs'

const AT_A_TIME = 2
const PACKAGE = 'packages/spillway'
const GATEWAY = 'packages/gateway'
const MOCK_VENDOR = 'packages/mock-vendor'
const SIMULATOR = 'packages/simulator'
const DASHBOARD = 'packages/dashboard'

/**
 * Steps that run only when named, as in `npm run check -- packages`, because they take minutes: they install everything
 * anew. A name that is deleted here becomes part of `npm run check`.
 */
const ONLY_BY_NAME = ['packages', 'pages']

/**
 * `after` names the step whose output this one reads. The output of a step with `isReport` is shown even
 * if it passes. The longest steps come first.
 */
const STEPS = [
  { name: 'types', what: 'sources, tests, bench and examples compile', args: [tools.tsc, '-b'] },
  {
    name: 'lint',
    what: 'style, formatting, injected time and chance',
    args: [tools.biome, 'check', '--error-on-warnings', '.'],
  },
  {
    name: 'imports',
    what: 'import rules between folders, cycles',
    args: [
      tools.depcruise,
      '--config',
      '.dependency-cruiser.cjs',
      `${PACKAGE}/src`,
      `${GATEWAY}/src`,
      `${MOCK_VENDOR}/src`,
      `${SIMULATOR}/src`,
      `${DASHBOARD}/src`,
      `${DASHBOARD}/page/src`,
    ],
  },
  { name: 'unused', what: 'unused files, exports and dependencies', args: [tools.knip] },
  {
    name: 'attw',
    what: 'types resolve in programs that install the package',
    args: [tools.attw, '--pack', PACKAGE, '--profile', 'esm-only'],
    after: 'types',
  },
  {
    name: 'publint',
    what: 'the published package is well-formed',
    args: [tools.publint, PACKAGE, '--strict'],
    after: 'types',
  },
  {
    name: 'api',
    what: `public API is the reviewed one (${PACKAGE}/api.md)`,
    args: [join(root, 'scripts/api.mjs'), '--check'],
    after: 'types',
  },
  {
    name: 'docs',
    what: 'examples in the docs are the ones we compile',
    args: [join(root, 'scripts/sync-docs.mjs'), '--check'],
  },
  {
    name: 'reference',
    what: 'generated pages of docs/reference are up to date, nothing lacks a description',
    args: [join(root, 'scripts/reference/build-reference.mjs'), '--check'],
    after: 'types',
  },
  {
    name: 'site',
    what: 'the documentation site builds, without broken links',
    args: [join(root, 'scripts/check-site.mjs')],
    after: 'types',
  },
  {
    name: 'walk',
    what: 'files and functions that one call passes (--list names them)',
    args: [join(root, 'scripts/check-walk.mjs')],
    after: 'types',
    isReport: true,
  },
  {
    name: 'gateway-walk',
    what: 'files of the gateway that one chat request passes (--list names them)',
    args: [join(root, 'scripts/check-gateway-walk.mjs')],
    after: 'types',
    isReport: true,
  },
  {
    name: 'layout',
    what: `sizes of files and folders in ${PACKAGE}/src`,
    args: [join(root, 'scripts/check-layout.mjs')],
  },
  {
    name: 'paths',
    what: 'files and folders that ARCHITECTURE.md names exist',
    args: [join(root, 'scripts/check-paths.mjs')],
  },
  {
    name: 'language',
    what: 'plain English in texts, words of the glossary in names',
    args: [join(root, 'scripts/check-language.mjs')],
  },
  {
    name: 'spelling',
    what: 'spelling in docs, comments, strings and names (words of the field: scripts/dictionary.txt)',
    args: [
      tools.cspell,
      'lint',
      '--config',
      'cspell.jsonc',
      '--dot',
      '--no-progress',
      '--no-summary',
    ],
  },
  {
    name: 'manifests',
    what: 'Kubernetes manifests in deploy/ fit the schemas',
    args: [join(root, 'scripts/check-manifests.mjs')],
  },
  {
    name: 'chart',
    what: 'the Helm chart renders to the same manifests as the overlays',
    args: [join(root, 'scripts/check-chart.mjs')],
  },
  {
    name: 'packages',
    what: 'packed and installed with Node 20 to 26: imports, types, gateway, command',
    args: [join(root, 'scripts/check-packages.mjs')],
    after: 'types',
    isReport: true,
  },
  {
    name: 'pages',
    what: 'quickstarts, tutorial and Kubernetes page, followed word for word on a fresh clone',
    args: [join(root, 'scripts/follow/follow-pages.mjs')],
    isReport: true,
  },
  {
    name: 'audit',
    what: 'no serious vulnerability is known in the dependencies that users install',
    args: [join(root, 'scripts/audit.mjs')],
  },
]

const words = process.argv.slice(2)
const names = words.filter((word) => word !== '--list')
const isList = words.length > names.length
if (names.includes('--help') || names.includes('-h')) {
  process.stdout.write(help())
  process.exit(0)
}
const unknown = names.filter((name) => !STEPS.some((step) => step.name === name))
if (unknown.length > 0) {
  process.stderr.write(`unknown step: ${unknown.join(', ')}\n\n${help()}`)
  process.exit(2)
}

const chosen = STEPS.filter(({ name }) =>
  names.length === 0 ? !ONLY_BY_NAME.includes(name) : names.includes(name),
)
const build = chosen.some((step) => step.after === 'types') && !isChosen('types') ? [GATEWAY] : []
await setupOrExit({ build })

const failed = await runAll(chosen)
if (failed.length > 0) {
  process.stdout.write(`\n${failed.length} of ${chosen.length} failed: ${failed.join(', ')}\n`)
  process.exitCode = 1
}

function isChosen(name) {
  return chosen.some((step) => step.name === name)
}

async function runAll(steps) {
  const waiting = [...steps]
  const finished = new Set()
  const running = new Set()
  const failed = []

  while (waiting.length > 0 || running.size > 0) {
    const next = waiting.findIndex(({ after }) => !after || !isChosen(after) || finished.has(after))
    if (next !== -1 && running.size < AT_A_TIME) {
      const [step] = waiting.splice(next, 1)
      const job = runStep(step).then((passed) => {
        if (!passed) failed.push(step.name)
        finished.add(step.name)
        running.delete(job)
      })
      running.add(job)
    } else {
      await Promise.race(running)
    }
  }
  return failed
}

async function runStep({ name, what, args, isReport = false }) {
  const startMs = performance.now()
  const { code, output } = await runNode(isReport && isList ? [...args, '--list'] : args)
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(1)
  const skipped = code === SKIPPED
  const mark = skipped ? '! SKIPPED' : code === 0 ? '✓' : '✗'
  process.stdout.write(`${mark} ${name.padEnd(8)} ${what}  ${seconds} s\n`)
  if (code !== 0 || isReport)
    process.stdout.write(`${indent(output.trim() || `exit code ${code}`)}\n\n`)
  return code === 0 || skipped
}

function indent(text) {
  return text.replace(/^(?=.)/gm, '    ')
}

function help() {
  const list = STEPS.map(({ name, what }) => {
    const note = ONLY_BY_NAME.includes(name) ? ' (only if named)' : ''
    return `  ${name.padEnd(8)} ${what}${note}`
  }).join('\n')
  return `npm run check                 every step\nnpm run check -- lint types   only these\n\n${list}\n`
}
