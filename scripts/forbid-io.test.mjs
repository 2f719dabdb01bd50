import { execFile, execFileSync, spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'

describe('the quick test group', () => {
  it.each([
    ['open a server socket', () => createServer().listen(0)],
    ['open a connection', () => connect(1, '127.0.0.1')],
    ['start a child process', () => spawn('true')],
    ['start a child process', () => execFile('true')],
    ['start a child process', () => execFileSync('true')],
  ])('a quick test that tries to %s fails with the line that marks an io test', (what, action) => {
    expect(action).toThrow(`A quick test tried to ${what}`)
    expect(action).toThrow('// test-group: io')
  })

  it('a quick test cannot use fetch', async () => {
    const error = await fetch('http://127.0.0.1:4321').catch((reason) => reason)
    expect(String(error.cause)).toContain('A quick test tried to open a connection')
  })
})
