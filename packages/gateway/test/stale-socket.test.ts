// test-group: sockets

import { once } from 'node:events'
import {
  existsSync,
  linkSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { builtInConfig } from '../src/config/built-in-config.js'
import { createGateway, type GatewaySupervisor } from '../src/gateway.js'
import { removeStaleSocket } from '../src/server/stale-socket.js'

const silent = { request() {}, event() {}, failure() {}, close() {} }

/** The file of a socket as a killed process leaves it. */
async function staleSocket(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'stale-socket-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'gateway.sock')
  const server = createServer().listen(path)
  await once(server, 'listening')
  linkSync(path, `${path}.copy`)
  await new Promise((resolve) => server.close(resolve))
  renameSync(`${path}.copy`, path)
  return path
}

async function connectTo(path: string): Promise<void> {
  const socket = connect(path)
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
}

describe('a Unix socket that a killed process left behind', () => {
  it('several processes may remove a stale socket at once', async () => {
    const path = await staleSocket()
    await Promise.all(Array.from({ length: 20 }, () => removeStaleSocket(path)))
    expect(existsSync(path)).toBe(false)
  })

  it('a file that is no socket is not removed', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'stale-socket-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    const path = join(folder, 'gateway.sock')
    writeFileSync(path, 'important')
    await removeStaleSocket(path)
    expect(readFileSync(path, 'utf8')).toBe('important')
  })

  it('a worker neither removes a socket nor listens, because its supervisor does both', async () => {
    const listen = await staleSocket()
    const supervisor = {
      slot: 1,
      workers: () => ({ ready: 0, total: 2, overloaded: 0, started: false }),
      decisions: async () => [],
    }
    const gateway = await createGateway(
      { ...builtInConfig({ env: {} }), listen },
      { log: silent, supervisor: supervisor as unknown as GatewaySupervisor },
    )
    onTestFinished(() => gateway.close({ graceMs: 0, delayMs: 0 }))
    expect(await gateway.start()).toEqual({ port: 0, adminPort: 0 })
    expect(existsSync(listen)).toBe(true)
    await expect(connectTo(listen)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })
})
