import { defineConfig } from 'vite'

// What is here is needed by `vite` for developing and by scripts/build-page.mjs, which adds the rest.
export default defineConfig({
  build: {
    // `light-dark()` in the style; without it the style would be written twice.
    target: ['chrome123', 'firefox121', 'safari17.5'],
    reportCompressedSize: false,
  },
})
