// Starts a tool and returns its exit code, with its output either shown or collected.

import { spawn } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))

/** The exit code of a check that could not be made. */
export const SKIPPED = 77

/** Whether the module at `url` is the program that Node was started with. */
export function isMain(url) {
  return process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(url)
}

/** The file a tool's package starts from, so that no shell and no PATH is involved. */
export const tools = {
  attw: join(root, 'node_modules/@arethetypeswrong/cli/dist/index.js'),
  biome: join(root, 'node_modules/@biomejs/biome/bin/biome'),
  cspell: join(root, 'node_modules/cspell/bin.mjs'),
  depcruise: join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs'),
  knip: join(root, 'node_modules/knip/bin/knip.js'),
  publint: join(root, 'node_modules/publint/src/cli.js'),
  // The native compiler needs a quarter of the time of the JavaScript one, which other tools import.
  tsc: join(root, 'node_modules/typescript-native/bin/tsc'),
  vitepress: join(root, 'node_modules/vitepress/bin/vitepress.js'),
  vitest: join(root, 'node_modules/vitest/vitest.mjs'),
}

/**
 * Runs Node with `args` and resolves with `{ code, stdout, output }`; never rejects. With `stdio: 'collect'`,
 * `stdout` is standard output alone and `output` also contains stderr.
 */
export function runNode(args, options) {
  return run(process.execPath, args, options)
}

/** Further options are those of `spawn`, such as `env`. */
export function run(command, args, { stdio = 'collect', cwd = root, ...options } = {}) {
  return new Promise((resolve) => {
    const collect = stdio === 'collect'
    const child = spawn(command, args, {
      ...options,
      cwd,
      stdio: collect ? ['ignore', 'pipe', 'pipe'] : stdio,
    })
    const result = { code: 127, stdout: '', output: '' }
    child.stdout?.setEncoding('utf8').on('data', (chunk) => {
      result.stdout += chunk
      result.output += chunk
    })
    child.stderr?.setEncoding('utf8').on('data', (chunk) => {
      result.output += chunk
    })
    child.on('error', (error) => {
      resolve({ ...result, output: `${result.output}${error.message}\n` })
    })
    child.on('close', (code, signal) => {
      resolve({ ...result, code: code ?? exitCodeOf(signal) })
    })
  })
}

/** The exit code that a shell reports for a process ended by a signal. */
export function exitCodeOf(signal) {
  return { SIGINT: 130, SIGTERM: 143 }[signal] ?? 1
}
