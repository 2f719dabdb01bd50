// A static server for the built site, as GitHub Pages serves it: /folder/page is page.html.

import { createReadStream, existsSync, statSync } from 'node:fs'
import { createServer } from 'node:http'
import { extname, join } from 'node:path'
import { project } from '../../packages/spillway/dist/core/project.js'
import { SITE_FOLDER } from './build-site.mjs'

export const { pathname: SITE_BASE } = new URL(`${project.documentation}/`)
const TYPES = {
  '.css': 'text/css',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
}

/** Resolves with the origin and a function that stops the server. */
export async function serveSite(folder = SITE_FOLDER) {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    const file = pathname.startsWith(SITE_BASE)
      ? fileOf(folder, pathname.slice(SITE_BASE.length))
      : undefined
    if (file === undefined) return response.writeHead(404).end()
    response.writeHead(200, { 'content-type': TYPES[extname(file)] ?? 'application/octet-stream' })
    createReadStream(file).pipe(response)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => {
    server.closeAllConnections()
    return new Promise((resolve) => server.close(resolve))
  }
  return { origin: `http://127.0.0.1:${server.address().port}`, close }
}

function fileOf(folder, path) {
  const file = join(folder, decodeURIComponent(path))
  const candidates = [file, `${file}.html`, join(file, 'index.html')]
  return candidates.find((each) => existsSync(each) && statSync(each).isFile())
}
