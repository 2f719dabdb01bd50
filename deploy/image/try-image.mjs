// npm run image: builds the image from the Dockerfile and tries it, without Docker and without a registry of images.
// Needs root on a Debian machine, and installs buildah if it is missing. With `-- --twice` it builds the image a second
// time and compares all files.
//
// It starts the image with a read-only root file system and checks: the process is not root, the health check succeeds, a
// chat request is answered, and SIGTERM lets a running stream end before the process exits with 0 within its grace period.
// Then it starts the image with a root file system that the process may write, and checks that it wrote only to /tmp.

import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { buildBase, buildImage, ensureBuildah } from './build-image.mjs'
import { changedPaths, digestOf, fileTree } from './file-tree.mjs'
import { inspectImage, runInside, startImage, withFiles } from './run-image.mjs'

const IMAGE = 'localhost/spillway-gateway'
const PORT = 18_080
const ADMIN_PORT = 18_081
const SLOW_STREAM = JSON.stringify({ tokens: 80, tokenMs: 100 })
const START_MS = 30_000
/**
 * Grace period of the container: drain.delayMs and drain.graceMs of the image's configuration, plus 10 s, as in
 * compose.yaml.
 */
const GRACE_MS = 45_000
/** Mounted while the image runs. */
const MOUNTED = ['tmp', 'proc', 'dev', 'sys']
const ANNOTATION = 'org.opencontainers.image'

const say = (line) => process.stderr.write(`${line}\n`)

const problem = await ensureBuildah(say)
if (problem !== undefined) {
  say(problem)
  process.exit(1)
}
await buildBase(say)
say('building deploy/image/Dockerfile …')
await buildImage(IMAGE)
const tree = await withFiles(IMAGE, (root) => fileTree(root))
say(`${tree.size} files, digest of the file tree: ${digestOf(tree)}`)
if (process.argv.includes('--twice')) await checkSecondBuild()
await checkMetadata()
await tryReadOnly()
await tryWritable()
process.stdout.write('the image works\n')

async function checkSecondBuild() {
  say('building deploy/image/Dockerfile again …')
  await buildImage(`${IMAGE}-again`)
  const again = await withFiles(`${IMAGE}-again`, (root) => fileTree(root))
  say(`${again.size} files, digest of the file tree: ${digestOf(again)}`)
  assert.deepEqual(changedPaths(tree, again), [], 'two builds must have the same files')
}

async function checkMetadata() {
  const { config } = (await inspectImage(IMAGE)).Docker
  for (const name of ['title', 'description', 'licenses', 'source', 'version', 'revision']) {
    assert.ok(config.Labels[`${ANNOTATION}.${name}`], `the label ${ANNOTATION}.${name} is missing`)
  }
  assert.deepEqual(config.Healthcheck.Test, ['CMD', 'node', '/app/health-check.mjs'])
  say('labels and health check are present')
}

async function tryReadOnly() {
  say('starting the image with a read-only root file system …')
  await withGateway({}, async (gateway) => {
    const status = readFileSync(`/proc/${gateway.pid}/status`, 'utf8')
    assert.match(status, /^Uid:\t10001\t10001\t10001\t10001$/m, 'the process must not be root')
    const mounts = readFileSync(`/proc/${gateway.pid}/mounts`, 'utf8')
    assert.match(mounts, /^\S+ \/ \S+ ro,/m, 'the root file system must be read-only')
    await checkHealthCheck(gateway)
    await useAndDrain(gateway)
    assert.doesNotMatch(gateway.output, /EROFS|EACCES/, 'nothing outside /tmp may be written')
  })
}

async function tryWritable() {
  say('starting the image with a root file system that its user may write …')
  let before
  const beforeStart = (root) => {
    before = fileTree(root, MOUNTED)
  }
  await withGateway({ isWritable: true, beforeStart }, async (gateway) => {
    await useAndDrain(gateway)
    const changed = changedPaths(before, fileTree(gateway.root, MOUNTED))
    assert.deepEqual(changed, [], 'nothing outside /tmp may be written')
    say(`wrote none of ${before.size} files, and no other, outside /tmp`)
  })
}

async function withGateway(options, use) {
  const ports = ['--port', String(PORT), '--admin-port', String(ADMIN_PORT)]
  const args = ['gateway', '--config', '/etc/spillway/spillway.yaml', ...ports]
  const gateway = await startImage(IMAGE, args, options)
  try {
    await untilReady(gateway)
    await use(gateway)
  } catch (error) {
    say(gateway.output)
    throw error
  } finally {
    await gateway.remove()
  }
}

async function checkHealthCheck(gateway) {
  const { User, Healthcheck } = (await inspectImage(IMAGE)).Docker.config
  const [, ...command] = Healthcheck.Test
  const check = (port) =>
    runInside(gateway, User, command, {
      PATH: '/usr/sbin:/usr/bin',
      SPILLWAY_ADMIN_PORT: String(port),
    })
  assert.equal(await check(ADMIN_PORT), 0, 'the health check must succeed')
  assert.equal(await check(1), 1, 'the health check must fail where nothing listens')
  say('the health check succeeds')
}

/** Sends a chat request and a stream. SIGTERM comes in the middle of the stream. */
async function useAndDrain(gateway) {
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
  say(`drained and exited with code 0 after ${tookMs} ms; the grace period is ${GRACE_MS} ms`)
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
    // A streamed answer takes eight seconds: longer than drain.delayMs, so that it ends after the listener closed.
    headers: { 'content-type': 'application/json', ...(stream && { 'x-mock': SLOW_STREAM }) },
    body: JSON.stringify({
      model: 'gpt-4o',
      stream,
      messages: [{ role: 'user', content: 'Hello' }],
    }),
  })
}
