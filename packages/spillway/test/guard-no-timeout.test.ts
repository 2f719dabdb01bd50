import { createSpillway, type GuardOptions, llmDefaults, onEvent } from 'spillway'
import { describe, expect, it, onTestFinished } from 'vitest'

function start() {
  const spillway = createSpillway()
  onTestFinished(() => spillway.close())
  const warned: string[] = []
  const listen = () => {
    const stop = onEvent((event) => {
      if (event.type === 'guard.no-timeout') warned.push(event.name)
    })
    onTestFinished(stop)
  }
  return { spillway, warned, listen }
}

describe('guard without a timeout', () => {
  it.each<[string, GuardOptions]>([
    ['no options', {}],
    ['other stages', { concurrency: { limit: 1 }, retry: { attempts: 2 } }],
    ['only unreadMs', { timeout: { unreadMs: '1s' } }],
  ])('a guard with %s emits guard.no-timeout once', async (_, options) => {
    const { spillway, warned, listen } = start()
    listen()
    const guard = spillway.guard('vendor', options)
    expect(warned).toEqual(['vendor'])
    for (let call = 0; call < 3; call++) await guard.run(() => call)
    await guard.tryRun(() => 1)
    expect(warned).toEqual(['vendor'])
  })

  it('a guard that was created before its listener emits guard.no-timeout with its next call', async () => {
    const { spillway, warned, listen } = start()
    const guard = spillway.guard('vendor', {})
    await guard.run(() => 1)
    listen()
    expect(warned).toEqual([])
    await guard.run(() => 2)
    await guard.run(() => 3)
    expect(warned).toEqual(['vendor'])
  })

  it('each guard without a timeout emits its own event', () => {
    const { spillway, warned, listen } = start()
    listen()
    spillway.guard('one', {})
    spillway.guard('two', { timeout: { callMs: '1s' } })
    spillway.guard('three', {})
    expect(warned).toEqual(['one', 'three'])
  })

  it.each<[string, GuardOptions]>([
    ['callMs', { timeout: { callMs: '1s' } }],
    ['firstByteMs', { timeout: { firstByteMs: '1s' } }],
    ['idleMs', { timeout: { idleMs: '1s' } }],
    ['llmDefaults()', llmDefaults()],
  ])('a guard with %s does not emit guard.no-timeout', async (_, options) => {
    const { spillway, warned, listen } = start()
    listen()
    await spillway.guard('vendor', options).run(() => 1)
    expect(warned).toEqual([])
  })
})
