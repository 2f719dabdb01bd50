// npm run sbom [-- FILE]: writes the software bill of materials of the gateway in CycloneDX's format. It lists what runs,
// with versions and checksums from package-lock.json; development dependencies are left out.

import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { isMain, root, run } from './run-command.mjs'

const FILE = 'sbom.cdx.json'
const ARGS = ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx']
const GATEWAY = 'packages/gateway'

if (isMain(import.meta.url)) {
  const [file = join(root, FILE)] = process.argv.slice(2)
  writeFileSync(file, await createSbom())
  process.stdout.write(`wrote ${file}\n`)
}

/** The document as text. Its subject is a package that depends on `@spillway/gateway` only. */
export async function createSbom() {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-gateway-'))
  try {
    writePackages(folder, JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')))
    // On Windows npm is a .cmd file, which only a shell can start.
    const shell = process.platform === 'win32'
    const { code, stdout, output } = await run('npm', ARGS, { cwd: folder, shell })
    if (code !== 0) throw new Error(`npm sbom failed:\n${output}`)
    return stdout
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/**
 * Writes a lockfile with the packages needed at run time. npm's `--omit dev` would also omit packages that are a
 * run-time dependency of one workspace and a development dependency of another.
 */
function writePackages(folder, { packages, ...lock }) {
  const kept = {}
  for (const path of runTimePaths(packages)) {
    const { devDependencies, peerDependencies, peerDependenciesMeta, dev, devOptional, ...entry } =
      packages[path]
    kept[path] = entry
    if (!path.startsWith('packages/')) continue
    kept[`node_modules/${nameOf(path)}`] = { resolved: path, link: true }
    const manifest = { name: nameOf(path), ...entry }
    mkdirSync(join(folder, path), { recursive: true })
    writeFileSync(join(folder, path, 'package.json'), JSON.stringify(manifest))
  }
  const { version } = packages[GATEWAY]
  const subject = { name: 'spillway-gateway', version, private: true, workspaces: ['packages/*'] }
  writeFileSync(join(folder, 'package.json'), JSON.stringify(subject))
  const written = { ...lock, name: subject.name, version, packages: { '': subject, ...kept } }
  writeFileSync(join(folder, 'package-lock.json'), JSON.stringify(written))
}

/** Paths in the lockfile of the gateway and of all it needs to run. */
function runTimePaths(packages) {
  const paths = new Set([GATEWAY])
  // Paths that the loop adds are visited, too.
  for (const path of paths) {
    const { dependencies, optionalDependencies, peerDependencies } = packages[path]
    const isOurs = path.startsWith('packages/')
    const names = {
      ...dependencies,
      ...optionalDependencies,
      ...(isOurs && ours(peerDependencies)),
    }
    for (const name of Object.keys(names)) {
      const found = findPackage(packages, path, name)
      if (found !== undefined) paths.add(found)
    }
  }
  return paths
}

/** The dashboard has the library as a peer, because both have to use one copy. */
function ours(peers = {}) {
  return 'spillway' in peers && { spillway: peers.spillway }
}

/** Resolves like Node: in the folder of the package, then in the folders above. */
function findPackage(packages, from, name) {
  for (let folder = from; ; folder = dirname(folder)) {
    const path = join(folder, 'node_modules', name).replaceAll('\\', '/')
    const found = packages[path]
    if (found !== undefined) return found.link === true ? found.resolved : path
    if (folder === '.') return undefined
  }
}

function nameOf(path) {
  return JSON.parse(readFileSync(join(root, path, 'package.json'), 'utf8')).name
}
