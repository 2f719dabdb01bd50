/** The command `spillway`, as a separate process or inside this one. */
import { execFile, spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished, vi } from 'vitest'
import { runProgram } from '../src/cli/run-program.js'

const BIN = fileURLToPath(new URL('../dist/bin/spillway.js', import.meta.url))

export interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface Shell {
  readonly folder: string
  /** Runs the command in the folder and returns how it ended. */
  run(...args: string[]): Promise<Ended>
  /** Runs the command inside this process, see `runHere`, with the environment of this process. */
  runHere(...args: string[]): Promise<Ended>
}

/** A folder with a `spillway.yaml`, removed after the test. */
export function openShell(config?: object, env: Record<string, string> = {}): Shell {
  const folder = mkdtempSync(join(tmpdir(), 'command-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  // JSON is valid YAML.
  if (config !== undefined) writeFileSync(join(folder, 'spillway.yaml'), JSON.stringify(config))
  const { REDIS_URL: _, ...ours } = process.env
  return {
    folder,
    runHere: (...args) => runHere(...args, '--config', join(folder, 'spillway.yaml')),
    run: (...args) =>
      new Promise((resolve) => {
        const options = { cwd: folder, env: { ...ours, ...env } }
        execFile(process.execPath, [BIN, ...args], options, (error, stdout, stderr) => {
          resolve({ code: Number(error?.code ?? 0), stdout, stderr })
        })
      }),
  }
}

/**
 * Runs the command inside this process, which takes milliseconds instead of half a second. Only one may run at a
 * time, because its output is what this process prints meanwhile.
 */
export async function runHere(...args: string[]): Promise<Ended> {
  let [stdout, stderr] = ['', '']
  const out = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    stdout += text
    return true
  })
  const err = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    stderr += text
    return true
  })
  try {
    return { code: await runProgram(args), stdout, stderr }
  } finally {
    out.mockRestore()
    err.mockRestore()
  }
}

/** Runs until it is stopped. */
export function spawnCommand(...args: string[]) {
  const child = spawn(process.execPath, [BIN, ...args])
  let [stdout, stderr] = ['', '']
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    stdout += chunk
  })
  child.stderr.setEncoding('utf8').on('data', (chunk) => {
    stderr += chunk
  })
  const exit = new Promise<number | null>((resolve) => child.once('close', resolve))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exit
  })
  return { child, exit, stdout: () => stdout, stderr: () => stderr }
}
