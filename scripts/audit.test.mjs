import { describe, expect, it } from 'vitest'
import { printAudit, reportIn } from './audit.mjs'

const vulnerability = (name, severity) => ({
  name,
  severity,
  range: '<1.2.3',
  via: [{ title: 'Request smuggling' }, 'another'],
})

function auditOf(stdout) {
  const lines = []
  return { code: printAudit(reportIn(stdout), (line) => lines.push(line)), lines }
}

describe('audit', () => {
  it('the audit fails on high and critical vulnerabilities and lists them', () => {
    const vulnerabilities = {
      a: vulnerability('a', 'high'),
      b: vulnerability('b', 'moderate'),
      c: vulnerability('c', 'critical'),
    }
    expect(auditOf(JSON.stringify({ vulnerabilities }))).toEqual({
      code: 1,
      lines: ['high: a <1.2.3: Request smuggling', 'critical: c <1.2.3: Request smuggling'],
    })
  })

  it('the audit passes if no serious vulnerability is known', () => {
    const vulnerabilities = { b: vulnerability('b', 'low') }
    expect(auditOf(JSON.stringify({ vulnerabilities }))).toEqual({ code: 0, lines: [] })
  })

  it.each(['', '{"message":"405 Method Not Allowed"}', 'npm error ENOTFOUND'])(
    'the audit is reported as NOT CHECKED if the registry cannot be queried (%s)',
    (stdout) => {
      const { code, lines } = auditOf(stdout)
      expect(code).toBe(77)
      expect(lines.join()).toContain('NOT CHECKED')
    },
  )
})
