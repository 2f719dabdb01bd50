/** Written by the build of packages/dashboard. Do not edit. */
export const PAGE: string =
  '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Spillway</title></head><body><p>The page is being built.</p></body></html>'
