import { defineConfig } from 'vite'

// Settings for `vite` and for scripts/build-page.mjs, which adds more.
export default defineConfig({
  build: {
    // `light-dark()` in the style; without it the style would be written twice.
    target: ['chrome123', 'firefox121', 'safari17.5'],
    reportCompressedSize: false,
  },
})
