// Programs from npm packages, such as other versions of Node. Each is downloaded once and not installed.

import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { root } from '../run-command.mjs'

/** A binary of Node, such as `20.19.0` or the newest `22`. */
export function nodeBinary(version) {
  return npmBinary(`node-${process.platform}-${process.arch}@${version}`, 'bin/node')
}

/** The file `path` of the package that `spec` names, executable. */
export function npmBinary(spec, path) {
  const cache = join(root, 'node_modules/.cache/binaries', spec.replaceAll('/', '-'))
  const binary = join(cache, 'package', path)
  if (!existsSync(binary)) {
    mkdirSync(cache, { recursive: true })
    const packed = runOrThrow(process.execPath, [npmCli(), 'pack', '--silent', spec], cache)
    runOrThrow('tar', ['-xzf', packed.trim().split('\n').at(-1)], cache)
    chmodSync(binary, 0o755)
  }
  return binary
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
