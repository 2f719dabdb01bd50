// One way to start a tool: output either shown as it comes or collected, and always an exit code.

import { spawn } from 'node:child_process'
import { realpathSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('..', import.meta.url))

/** The exit code of a check that could not be made. */
export const SKIPPED = 77

/** Whether the module at `url` is the one Node was started with, and not imported. */
export function isMain(url) {
  return process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(url)
}

/** The file a tool's package starts from, so that no shell and no PATH is involved. */
export const tools = {
  attw: join(root, 'node_modules/@arethetypeswrong/cli/dist/index.js'),
  biome: join(root, 'node_modules/@biomejs/biome/bin/biome'),
  depcruise: join(root, 'node_modules/dependency-cruiser/bin/dependency-cruise.mjs'),
  knip: join(root, 'node_modules/knip/bin/knip.js'),
  publint: join(root, 'node_modules/publint/src/cli.js'),
  // The native compiler needs a quarter of the time of the JavaScript one, which other tools import.
  tsc: join(root, 'node_modules/typescript-native/bin/tsc'),
  vitepress: join(root, 'node_modules/vitepress/bin/vitepress.js'),
  vitest: join(root, 'node_modules/vitest/vitest.mjs'),
}

/**
 * Runs Node with `args` and resolves with `{ code, stdout, output }`; never rejects.
 * `stdio: 'collect'` keeps stdout by itself and, in `output`, together with stderr.
 */
export function runNode(args, { stdio = 'collect', cwd = root } = {}) {
  return run(process.execPath, args, { stdio, cwd })
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

/** What a shell would report for a process a signal ended. */
export function exitCodeOf(signal) {
  return { SIGINT: 130, SIGTERM: 143 }[signal] ?? 1
}
