// A terminal of the reader: a shell that keeps its variables and functions from block to block, and Ctrl-C.

import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'

const STOPS_WITHIN_MS = 30_000

/**
 * @param {object} options
 * @param {string} options.folder where commands run
 * @param {string} options.scratch where blocks are written
 * @param {Record<string, string>} options.env
 */
export function openTerminal({ folder, scratch, env }) {
  // A process group of its own, because Ctrl-C reaches all programs of a terminal.
  const shell = spawn('bash', ['--noprofile', '--norc'], { cwd: folder, env, detached: true })
  const ended = new Promise((resolve) => shell.once('close', resolve))
  let output = ''
  let notice = () => {}
  for (const stream of [shell.stdout, shell.stderr]) {
    stream.setEncoding('utf8').on('data', (chunk) => {
      output += chunk
      notice()
    })
  }
  // The shell is still there after a command has failed, so a failure is a line of the output.
  shell.stdin.write(`exec 2>&1; set -o pipefail; trap 'echo "failed: $BASH_COMMAND"' ERR\n`)
  const commands = []

  return {
    /** The blocks that ran here. */
    commands,

    /**
     * Runs a block until it ends, or until `isEnough(output)`: a server does not end.
     * @returns {Promise<{ output: string, problem?: string }>}
     */
    run(block, { isEnough, withinMs }) {
      commands.push(block)
      output = ''
      const end = `[end of block ${commands.length}]`
      const file = join(scratch, `block-${shell.pid}-${commands.length}.sh`)
      writeFileSync(file, block)
      shell.stdin.write(`. ${file} < /dev/null; echo '${end}'\n`)
      return new Promise((resolve) => {
        const finish = (problem) => {
          clearTimeout(timer)
          notice = () => {}
          resolve({ output: output.replace(/^\[end of block \d+\]\n/gm, ''), problem })
        }
        shell.once('close', () => finish('the terminal was closed'))
        const timer = setTimeout(() => finish(`no end after ${withinMs / 1_000} s`), withinMs)
        notice = () => {
          const failure = /^failed: .*$/m.exec(output)?.[0]
          if (output.includes(end)) finish(failure)
          else if (isEnough(output)) finish()
        }
      })
    },

    /** Ctrl-C, then closes the terminal. */
    async stop() {
      shell.stdin.end()
      signalGroup(shell.pid, 'SIGINT')
      const timer = setTimeout(() => signalGroup(shell.pid, 'SIGKILL'), STOPS_WITHIN_MS)
      await ended
      clearTimeout(timer)
    },
  }
}

function signalGroup(pid, signal) {
  try {
    process.kill(-pid, signal)
  } catch (error) {
    if (error.code !== 'ESRCH') throw error
  }
}
