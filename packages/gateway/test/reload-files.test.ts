// test-group: io

/** Triggers of a reload: a signal, an editor, Kubernetes or a changed key. */
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { pauseMs, until } from '../../spillway/test/streams/stream-kit.js'
import { watchFiles } from '../src/reload/watch-files.js'
import { startVendor } from './gateway-kit.js'
import { startGatewayProcess } from './gateway-process.js'

/** A watched folder and the number of reported changes. */
function setup(files: Record<string, string>, pollMs = 60_000) {
  const folder = mkdtempSync(join(tmpdir(), 'watched-'))
  const at = (name: string) => join(folder, name)
  for (const [name, content] of Object.entries(files)) writeFileSync(at(name), content)
  const seen = { changes: 0 }
  const watch = watchFiles(() => seen.changes++, { pollMs })
  onTestFinished(() => {
    watch.close()
    rmSync(folder, { recursive: true, force: true })
  })
  return { at, watch, seen }
}

const QUIET_MS = 400

describe('watched files', () => {
  it('a watched file that is replaced is reported each time', async () => {
    const { at, watch, seen } = setup({ 'a.yaml': 'one' })
    watch.loaded(new Map([[at('a.yaml'), 'one']]))
    await pauseMs(QUIET_MS)
    for (const [index, content] of ['two', 'three'].entries()) {
      writeFileSync(at('new'), content)
      renameSync(at('new'), at('a.yaml'))
      await until('it is seen', () => seen.changes === index + 1)
    }
    // Equal content, or another file in the folder, does not trigger a reload.
    writeFileSync(at('a.yaml'), 'three')
    writeFileSync(at('other'), 'x')
    await pauseMs(QUIET_MS)
    expect(seen.changes).toBe(2)
  })

  it('a switched Kubernetes symlink is reported', async () => {
    const { at, watch, seen } = setup({})
    for (const version of ['1', '2']) {
      mkdirSync(at(`..${version}`))
      writeFileSync(join(at(`..${version}`), 'a.yaml'), version)
    }
    symlinkSync('..1', at('..data'))
    symlinkSync(join('..data', 'a.yaml'), at('a.yaml'))
    watch.loaded(new Map([[at('a.yaml'), '1']]))
    await pauseMs(QUIET_MS)
    symlinkSync('..2', at('..data_tmp'))
    renameSync(at('..data_tmp'), at('..data'))
    rmSync(at('..1'), { recursive: true })
    await expect.poll(() => seen.changes).toBe(1)
  })

  it('a change before watching or without a file event is found by polling', async () => {
    const { at, watch, seen } = setup({ 'a.yaml': 'newer' }, 100)
    watch.loaded(new Map([[at('a.yaml'), 'what was read']]))
    await until('it is seen', () => seen.changes === 1)
    watch.loaded(new Map([[join(at('not-yet'), 'b.yaml'), undefined]]))
    await pauseMs(QUIET_MS)
    mkdirSync(at('not-yet'))
    writeFileSync(join(at('not-yet'), 'b.yaml'), 'there')
    await expect.poll(() => seen.changes).toBe(2)
  })
})

describe('spillway gateway reload', () => {
  it('gateway reloads when its file or a secret file changes, and on SIGHUP', async () => {
    const { vendor, url: vendorUrl } = await startVendor({ knobs: { tokens: 1 } })
    const keys = mkdtempSync(join(tmpdir(), 'keys-'))
    onTestFinished(() => rmSync(keys, { recursive: true, force: true }))
    const keyFile = join(keys, 'key')
    writeFileSync(keyFile, 'key-1')
    const config = {
      vendors: { openai: { protocol: 'openai', url: vendorUrl, key: `file:${keyFile}` } },
    }
    const { url, folder, stdout, child, exit } = await startGatewayProcess({ config })
    const file = join(folder, 'spillway.yaml')
    const countOf = (what: string) =>
      stdout()
        .split('\n')
        .filter((line) => line.includes(what)).length
    const chat = async () => {
      const body = JSON.stringify({ model: 'gpt', messages: [] })
      const answer = await fetch(`${url}/v1/chat/completions`, { method: 'POST', body })
      await answer.text()
      return { status: answer.status, key: vendor.calls.at(-1)?.key }
    }
    expect(await chat()).toEqual({ status: 200, key: 'key-1' })

    writeFileSync(`${keyFile}.new`, 'key-2')
    renameSync(`${keyFile}.new`, keyFile)
    await until('the key is read', () => countOf('configuration applied') === 1)
    expect(await chat()).toEqual({ status: 200, key: 'key-2' })

    writeFileSync(file, 'vendors: [')
    await until('it is refused', () => countOf('configuration refused') === 1)
    expect(await chat()).toEqual({ status: 200, key: 'key-2' })

    writeFileSync(
      file,
      JSON.stringify({ ...config, routes: [{ path: '/v1/other', vendor: 'openai' }] }),
    )
    await until('it is read', () => countOf('configuration applied') === 2)
    expect((await chat()).status).toBe(404)

    child.kill('SIGHUP')
    await until('it has looked', () => countOf('configuration unchanged') === 1)
    expect(stdout()).not.toContain('key-')
    child.kill('SIGTERM')
    expect(await exit).toBe(0)
  })
})
