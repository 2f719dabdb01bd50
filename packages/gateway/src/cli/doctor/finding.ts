import { counted } from '../../config/counted.js'

/** A finding of the doctor: the state of one thing, and a remedy. */
export interface Finding {
  readonly verdict: 'ok' | 'warn' | 'fail'
  /** The checked item. */
  readonly of: string
  readonly message: string
  /** The remedy; undefined if there is no problem. */
  readonly advice?: string
}

/** The checked item of a store that does not answer, for the exit code. */
export const UNREACHABLE = 'store'

export const ok = (of: string, message: string): Finding => ({ verdict: 'ok', of, message })
export const warn = (of: string, message: string, advice: string): Finding => ({
  verdict: 'warn',
  of,
  message,
  advice,
})
export const fail = (of: string, message: string, advice: string): Finding => ({
  verdict: 'fail',
  of,
  message,
  advice,
})

export function findingsText(findings: readonly Finding[]): string {
  const widest = Math.max(...findings.map(({ of }) => of.length))
  const lines = findings.map(({ verdict, of, message, advice }) => {
    const head = `${verdict.padEnd(4)}  ${of.padEnd(widest)}  ${message}`
    return advice === undefined ? head : `${head}\n${' '.repeat(8 + widest)}${advice}`
  })
  const count = (which: Finding['verdict']) =>
    findings.filter(({ verdict }) => verdict === which).length
  const warnings = counted(count('warn'), 'warning')
  return `${lines.join('\n')}\n\n${count('ok')} ok, ${warnings}, ${count('fail')} failed\n`
}
