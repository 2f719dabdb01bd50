// test-group: io, slow

import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const program = fileURLToPath(new URL('./dist/overloaded-pod.js', import.meta.url))

interface Ended {
  code: number | null
  out: string
  err: string
}

/** Runs the built program and passes all output so far to `onOutput`. */
function run(
  args: string[],
  onOutput?: (out: string, kill: (signal: NodeJS.Signals) => void) => void,
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [program, ...args])
    const ended: Ended = { code: null, out: '', err: '' }
    child.stdout.setEncoding('utf8').on('data', (text) => {
      ended.out += text
      onOutput?.(ended.out, (signal) => child.kill(signal))
    })
    child.stderr.setEncoding('utf8').on('data', (text) => {
      ended.err += text
    })
    child.once('error', reject)
    child.once('close', (code) => resolve({ ...ended, code }))
  })
}

describe('overloaded-pod example', () => {
  it('--fast prints the same introduction and table every time', async () => {
    const [{ code, out, err }, seeded] = await Promise.all([
      run(['--fast']),
      run(['--fast', '--seed', '1']),
    ])
    expect(seeded.out).toBe(out)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^One pod, one vendor/)
    expect(out).toMatch(/overload, 800\/s offered +\d\/s +(1[6-9]|20)\d\/s\n/)
    expect(out).toMatch(/Back to normal after the overload +not in 5 s +at once\n/)
    expect(out).not.toContain('\x1b')
    expect(out).not.toContain('try next')
  })

  it('the example runs live by default and ends at once and silently on Ctrl-C', async () => {
    const { code, out, err } = await run([], (soFar, kill) => {
      if (soFar.includes('1 s  calm')) kill('SIGINT')
    })
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('Ctrl-C ends it')
    expect(out).toMatch(/\n {2}1 s {2}calm {8}offered +\d+\/s {2}goodput +\d+\/s .*\n$/)
    expect(out).not.toContain('\x1b')
  })

  it('--help lists the options', async () => {
    const { code, out } = await run(['--help'])
    expect(code).toBe(0)
    expect(out).toContain('--seed N')
  })

  it('the example rejects an unknown argument with exit code 1', async () => {
    const { code, out, err } = await run(['--quick'])
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err.split('\n')[0]).toBe("Unknown option '--quick'")
  })
})
