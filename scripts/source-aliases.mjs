// Resolves imports of the packages to their sources instead of the built files.

import { fileURLToPath } from 'node:url'

const packages = fileURLToPath(new URL('../packages', import.meta.url))
const src = `${packages}/spillway/src`

/** Vite's option `resolve`. */
export const resolve = {
  alias: [
    { find: /^spillway$/, replacement: `${src}/index.ts` },
    {
      find: /^spillway\/(degrade|health|http|internal|local|operate|options|shared|testing)$/,
      replacement: `${src}/$1/index.ts`,
    },
    { find: /^spillway\/(express|fastify|hono)$/, replacement: `${src}/http/$1.ts` },
    { find: /^spillway\/metrics$/, replacement: `${src}/observe/index.ts` },
    {
      find: /^@spillway\/(dashboard|mock-vendor|simulator)$/,
      replacement: `${packages}/$1/src/index.ts`,
    },
    { find: /^spillway\/redis$/, replacement: `${src}/store/redis/index.ts` },
  ],
}
