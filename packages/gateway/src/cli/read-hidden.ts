/** Reads a line from a terminal without echo. */
import { CommandError } from './command-error.js'

export interface Terminal {
  setRawMode(raw: boolean): unknown
  setEncoding(encoding: 'utf8'): unknown
  resume(): unknown
  pause(): unknown
  on(event: 'data', listener: (typed: string) => void): unknown
  once(event: 'end', listener: () => void): unknown
  off(event: 'data' | 'end', listener: (typed: string) => void): unknown
}

const [CTRL_C, CTRL_D, BACKSPACE, DELETE] = ['\u0003', '\u0004', '\b', '\u007f']

export function readHidden(
  question: string,
  terminal: Terminal,
  screen: { write(text: string): unknown },
): Promise<string> {
  screen.write(question)
  terminal.setRawMode(true)
  terminal.setEncoding('utf8')
  terminal.resume()
  return new Promise((resolve, reject) => {
    let line = ''
    const finish = () => {
      terminal.off('data', onTyped)
      terminal.off('end', leave)
      terminal.setRawMode(false)
      terminal.pause()
      screen.write('\n')
    }
    const leave = () => {
      finish()
      reject(new CommandError('no input'))
    }
    const onTyped = (typed: string) => {
      for (const each of typed) {
        if (each === CTRL_C || each === CTRL_D) return leave()
        if (each === '\r' || each === '\n') {
          finish()
          return resolve(line)
        }
        line = each === BACKSPACE || each === DELETE ? line.slice(0, -1) : line + each
      }
    }
    terminal.on('data', onTyped)
    terminal.once('end', leave)
  })
}
