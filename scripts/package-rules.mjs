// Rules for published packages. Used by npm run check -- packages and by package-rules.test.mjs.

import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** Folders of packages/ that are published. */
export const PACKAGES = ['spillway', 'mock-vendor', 'dashboard', 'simulator', 'gateway']

/** Problems in the manifests and folders of the packages under `root`. */
export function packageProblems(root) {
  const repository = readJson(join(root, 'package.json'))
  return [
    ...unlistedPackages(root),
    ...PACKAGES.flatMap((name) => {
      const folder = join(root, 'packages', name)
      const manifest = readJson(join(folder, 'package.json'))
      const problems = [
        ...manifestProblems(name, manifest, repository),
        ...fileProblems(folder, readFileSync(join(root, 'LICENSE'), 'utf8')),
        ...staleFiles(folder),
      ]
      return problems.map((problem) => `packages/${name}: ${problem}`)
    }),
  ]
}

function unlistedPackages(root) {
  return readdirSync(join(root, 'packages'))
    .filter((name) => !PACKAGES.includes(name))
    .map((name) => `packages/${name}: is not in the list of packages in scripts/package-rules.mjs`)
}

/** The address of the repository is written in the root's package.json, and all packages agree with it. */
export function manifestProblems(name, manifest, repository) {
  const address = repository.homepage.replace(/#.*$/, '')
  const wanted = {
    license: repository.license,
    repository: { ...repository.repository, directory: `packages/${name}` },
    homepage: `${address}/tree/main/packages/${name}#readme`,
    bugs: `${address}/issues`,
    engines: repository.engines,
    type: 'module',
  }
  const wrong = Object.entries(wanted)
    .filter(([field, value]) => JSON.stringify(manifest[field]) !== JSON.stringify(value))
    .map(([field, value]) => `${field} should be ${JSON.stringify(value)}`)
  const missing = ['description', 'keywords', 'files', 'exports']
    .filter(
      (field) => !(manifest[field]?.length > 0 || Object.keys(manifest[field] ?? {}).length > 0),
    )
    .map((field) => `${field} is missing`)
  const untyped = Object.entries(manifest.exports ?? {})
    .filter(([subpath, target]) => !subpath.endsWith('.json') && Object.keys(target)[0] !== 'types')
    .map(([subpath]) => `exports["${subpath}"] should begin with types`)
  const unpublishable = manifest.private ? ['private should not be set'] : []
  return [...wrong, ...missing, ...untyped, ...unpublishable]
}

function fileProblems(folder, license) {
  const problems = []
  if (!existsSync(join(folder, 'README.md'))) problems.push('README.md is missing')
  const file = join(folder, 'LICENSE')
  if (!existsSync(file) || readFileSync(file, 'utf8') !== license) {
    problems.push('LICENSE should be a copy of the one in the root')
  }
  return problems
}

/** Files in dist whose source was removed or renamed after an earlier build. They would be published. */
function staleFiles(folder) {
  const dist = join(folder, 'dist')
  if (!existsSync(dist)) return []
  return readdirSync(dist, { recursive: true })
    .filter((file) => /\.(d\.ts|js|map)$/.test(file))
    .filter((file) => {
      const source = join(folder, 'src', file.replace(/\.(d\.ts|js)$/, '.ts'))
      return file.endsWith('.map') || !existsSync(source)
    })
    .map((file) => `dist/${file} has no source; delete dist and build again`)
}

function readJson(file) {
  return JSON.parse(readFileSync(file, 'utf8'))
}
