/** What `npm install PACKAGE` puts on the disk: the package and everything it depends on. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const HERE = fileURLToPath(new URL('..', import.meta.url))
const SPILLWAY = fileURLToPath(new URL('../../../packages/spillway', import.meta.url))

export function footprintOf(name) {
  if (name === 'spillway') return { packages: 1, kB: kilobytes(spillwaySize()) }
  const folders = new Set()
  collect(name, HERE, folders)
  const bytes = [...folders].reduce((sum, folder) => sum + sizeOf(folder), 0)
  return { packages: folders.size, kB: kilobytes(bytes) }
}

export function versionOf(name) {
  const folder = name === 'spillway' ? SPILLWAY : join(HERE, 'node_modules', name)
  return manifestOf(folder).version
}

function collect(name, from, folders) {
  const folder = findFolder(name, from)
  if (folder === undefined || folders.has(folder)) return
  folders.add(folder)
  const { dependencies = {}, optionalDependencies = {} } = manifestOf(folder)
  for (const each of Object.keys({ ...dependencies, ...optionalDependencies })) {
    collect(each, folder, folders)
  }
}

/** As Node resolves it: the closest node_modules above. Optional packages for other platforms are missing. */
function findFolder(name, from) {
  for (let folder = from; folder.startsWith(dirname(HERE)); folder = dirname(folder)) {
    const found = join(folder, 'node_modules', name)
    if (existsSync(found)) return found
  }
  return undefined
}

function manifestOf(folder) {
  return JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
}

/** The files that npm publishes: three always, and `files` of the manifest without its `!` entries. */
function spillwaySize() {
  const { files } = manifestOf(SPILLWAY)
  const sizeOfAll = (names) => names.reduce((sum, name) => sum + sizeOf(join(SPILLWAY, name)), 0)
  const excluded = files.filter((each) => each.startsWith('!')).map((each) => each.slice(1))
  const included = files.filter((each) => !each.startsWith('!'))
  return sizeOfAll(['package.json', 'README.md', 'LICENSE', ...included]) - sizeOfAll(excluded)
}

function sizeOf(path) {
  const stats = statSync(path)
  if (!stats.isDirectory()) return stats.size
  return readdirSync(path)
    .filter((each) => each !== 'node_modules')
    .reduce((sum, each) => sum + sizeOf(join(path, each)), 0)
}

function kilobytes(bytes) {
  return Math.round(bytes / 1_000)
}
