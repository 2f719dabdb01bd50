// npm run release -- patch|minor|major|X.Y.Z [--dry-run]: makes the commit and the tag of a release. It pushes and
// publishes nothing: pushing the tag starts .github/workflows/release.yml.

import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMain, root } from './run-command.mjs'

const BRANCH = 'main'
const EMPTY = '## Unreleased\n'
const FIELDS = ['dependencies', 'devDependencies', 'peerDependencies']

/** Other places of the version, each with the text around it. */
const PLACES = [
  ['packages/spillway/src/core/version.ts', (version) => `VERSION = '${version}'`],
  ['deploy/image/Dockerfile', (version) => `ARG VERSION=${version}`],
  ['deploy/kubernetes/base/kustomization.yaml', (version) => `newTag: ${version}`],
  ['deploy/helm/spillway/Chart.yaml', (version) => `version: ${version}`],
  ['deploy/helm/spillway/Chart.yaml', (version) => `appVersion: ${version}`],
]

const VERSION = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)$/

class ReleaseError extends Error {}

if (isMain(import.meta.url)) {
  try {
    release({
      folder: root,
      args: process.argv.slice(2),
      today: new Date().toISOString().slice(0, 10),
      runChecks: () =>
        spawnSync(join(root, '.ci/run'), { cwd: root, stdio: 'inherit' }).status === 0,
      print: (line) => process.stdout.write(`${line}\n`),
    })
  } catch (error) {
    if (!(error instanceof ReleaseError)) throw error
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}

/** Throws a `ReleaseError`, and has changed nothing, if the release cannot be made. */
export function release({ folder, args, today, runChecks, print }) {
  const isDryRun = args.includes('--dry-run')
  const [wanted, ...others] = args.filter((arg) => arg !== '--dry-run')
  if (wanted === undefined || others.length > 0) {
    throw new ReleaseError('usage: npm run release -- patch|minor|major|X.Y.Z [--dry-run]')
  }
  const git = (...command) => execFileSync('git', command, { cwd: folder, encoding: 'utf8' }).trim()

  const current = readJson(join(folder, 'packages/spillway/package.json')).version
  const version = nextVersion(current, wanted)
  const tag = `v${version}`
  const changelog = readFileSync(join(folder, 'CHANGELOG.md'), 'utf8')
  const { text, section } = releaseChangelog(changelog, version, today)

  const branch = git('branch', '--show-current')
  if (branch !== BRANCH) throw new ReleaseError(`releases are made on ${BRANCH}, this is ${branch}`)
  const changed = git('status', '--porcelain')
  if (changed !== '') throw new ReleaseError(`the working tree is not clean:\n${changed}`)
  if (git('tag', '--list', tag) !== '') throw new ReleaseError(`the tag ${tag} exists`)

  const files = changedFiles(folder, current, version)
  files.set('CHANGELOG.md', text)
  if (isDryRun) {
    print(`${current} -> ${version}. Nothing is changed. These files would be:`)
    for (const file of files.keys()) print(`  ${file}`)
    print(`\n${section}`)
    return version
  }
  if (!runChecks()) throw new ReleaseError('the checks failed, so nothing was released')
  for (const [file, content] of files) writeFileSync(join(folder, file), content)
  git('commit', '--quiet', '--all', '--message', `release: ${version}`)
  git('tag', '--annotate', tag, '--message', `Spillway ${version}`)
  print(`committed and tagged ${tag}. To publish it: git push --follow-tags origin ${BRANCH}`)
  return version
}

/** The version after `current`. */
export function nextVersion(current, wanted) {
  const [major, minor, patch] = VERSION.exec(current).slice(1).map(Number)
  if (wanted === 'major') return `${major + 1}.0.0`
  if (wanted === 'minor') return `${major}.${minor + 1}.0`
  if (wanted === 'patch') return `${major}.${minor}.${patch + 1}`
  const parts = VERSION.exec(wanted)?.slice(1).map(Number)
  if (parts === undefined) throw new ReleaseError(`${wanted} is no version such as 1.2.3`)
  const [difference = 0] = parts
    .map((part, index) => part - [major, minor, patch][index])
    .filter((each) => each !== 0)
  if (difference <= 0) throw new ReleaseError(`${wanted} is not after ${current}`)
  return wanted
}

/** The changelog with the unreleased changes under the version, and these changes alone. */
export function releaseChangelog(changelog, version, date) {
  const start = changelog.indexOf(EMPTY)
  if (start === -1) throw new ReleaseError('CHANGELOG.md has no section "Unreleased"')
  const from = start + EMPTY.length
  const next = changelog.indexOf('\n## ', from)
  const end = next === -1 ? changelog.length : next + 1
  const changes = changelog.slice(from, end).trim()
  if (!/^- /m.test(changes)) throw new ReleaseError('CHANGELOG.md has no unreleased changes')
  const section = `## ${version} - ${date}\n\n${changes}\n`
  const rest = changelog.slice(end)
  const text = `${changelog.slice(0, from)}\n${section}${rest === '' ? '' : `\n${rest}`}`
  return { text, section }
}

/** The changes of one version, for the notes of its release. */
export function changesOf(changelog, version) {
  const sections = changelog.split(/^(?=## )/m)
  const found = sections.find((each) => each.startsWith(`## ${version} `))
  if (found === undefined) throw new ReleaseError(`CHANGELOG.md has no section for ${version}`)
  return `${found.slice(found.indexOf('\n')).trim()}\n`
}

/** New contents by path. Packages of this repository depend on each other's exact version. */
function changedFiles(folder, current, version) {
  const files = new Map()
  const read = (path) => files.get(path) ?? readFileSync(join(folder, path), 'utf8')
  const manifests = readdirSync(join(folder, 'packages'))
    .map((name) => `packages/${name}/package.json`)
    .map((path) => [path, readJson(join(folder, path))])
  const ours = new Set(manifests.map(([, { name }]) => name))
  for (const [path, manifest] of manifests) {
    files.set(path, toJson(withVersion(manifest, ours, current, version)))
  }
  const lock = readJson(join(folder, 'package-lock.json'))
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (path.startsWith('packages/'))
      lock.packages[path] = withVersion(entry, ours, current, version)
  }
  files.set('package-lock.json', toJson(lock))
  for (const [path, around] of PLACES) {
    const text = read(path)
    if (!text.includes(around(current))) {
      throw new ReleaseError(`${path} does not contain "${around(current)}"`)
    }
    files.set(path, text.replace(around(current), around(version)))
  }
  return files
}

function withVersion(manifest, ours, current, version) {
  const changed = { ...manifest, version }
  for (const field of FIELDS.filter((each) => manifest[each] !== undefined)) {
    changed[field] = Object.fromEntries(
      Object.entries(manifest[field]).map(([name, range]) =>
        ours.has(name) && range === current ? [name, version] : [name, range],
      ),
    )
  }
  return changed
}

function readJson(path) {
  return JSON.parse(readFileSync(path, 'utf8'))
}

function toJson(value) {
  return `${JSON.stringify(value, undefined, 2)}\n`
}
