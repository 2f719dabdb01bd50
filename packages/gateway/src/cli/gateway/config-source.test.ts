import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { ConfigSource } from './config-source.js'

it('--host replaces the host of the configuration, and without a file only this machine is served', () => {
  const command = { config: undefined, port: undefined, adminPort: undefined, workers: undefined }
  expect(new ConfigSource({ ...command, host: undefined }).read().host).toBe('127.0.0.1')
  expect(new ConfigSource({ ...command, host: '0.0.0.0' }).read().host).toBe('0.0.0.0')
})

it('check() reads the files on the disk, not the contents from a supervisor', () => {
  const folder = mkdtempSync(join(tmpdir(), 'config-source-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'spillway.yaml')
  const naming = (name: string) =>
    JSON.stringify({
      vendors: { [name]: { protocol: 'openai', url: 'mock' } },
      routes: [{ vendor: name }],
    })
  const source = new ConfigSource({
    config: file,
    host: undefined,
    port: undefined,
    adminPort: undefined,
    workers: undefined,
  })
  source.use(new Map([[file, naming('given')]]))
  writeFileSync(file, naming('written'))
  expect(source.read().vendors[0]?.name).toBe('given')
  expect(source.check().vendors[0]?.name).toBe('written')
  expect([...source.contents.values()]).toEqual([naming('given')])
  writeFileSync(file, 'vendors: nothing')
  expect(() => source.check()).toThrow('vendors')
})
