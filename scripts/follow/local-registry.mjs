// An npm registry on this machine that has the packages of this repository, as `npm pack` makes them. Requests for all
// other packages are redirected to the usual registry.

import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { PACKAGES } from '../package-rules.mjs'
import { root, run } from '../run-command.mjs'

/**
 * @param {string} folder where the tarballs are written
 * @returns {Promise<{ url: string, close: () => void }>}
 */
export async function startRegistry(folder) {
  const { stdout } = await run('npm', ['config', 'get', 'registry'])
  const usual = stdout.trim()
  const documents = new Map()
  const server = createServer(({ url }, response) => {
    const path = decodeURIComponent(url)
    if (documents.has(path)) response.end(documents.get(path))
    else response.writeHead(302, { location: new URL(url.slice(1), usual).href }).end()
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = `http://127.0.0.1:${server.address().port}`
  for (const name of PACKAGES) {
    const { manifest, packed } = await pack(name, folder)
    const dist = {
      tarball: `${address}/${packed.filename}`,
      integrity: packed.integrity,
      shasum: packed.shasum,
    }
    const { version } = manifest
    const versions = { [version]: { ...manifest, dist } }
    const document = { name: manifest.name, 'dist-tags': { latest: version }, versions }
    documents.set(`/${manifest.name}`, JSON.stringify(document))
    documents.set(`/${packed.filename}`, readFileSync(join(folder, packed.filename)))
  }
  return { url: address, close: () => server.close() }
}

async function pack(name, folder) {
  const cwd = join(root, 'packages', name)
  const { code, stdout, output } = await run(
    'npm',
    ['pack', '--json', '--pack-destination', folder],
    { cwd },
  )
  if (code !== 0) throw new Error(`npm pack failed in ${cwd}:\n${output}`)
  const [packed] = [JSON.parse(stdout)]
    .flat()
    .flatMap((each) => (each.filename ? each : Object.values(each)))
  const manifest = JSON.parse(readFileSync(join(cwd, 'package.json'), 'utf8'))
  return { manifest, packed }
}
