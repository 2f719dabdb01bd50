/** The fields of a `multipart/form-data` body. */

export interface UploadedFile {
  readonly name: string
  readonly contentType: string
  readonly bytes: Buffer
}

/** The last of several fields with one name wins. */
export interface Form {
  text(name: string): string | undefined
  file(name: string): UploadedFile | undefined
}

/** Undefined if the body is no form. */
export async function parseForm(
  contentType: string | undefined,
  body: Buffer,
): Promise<Form | undefined> {
  if (!/^multipart\/form-data\b/i.test(contentType ?? '')) return undefined
  const headers = { 'content-type': contentType ?? '' }
  const texts = new Map<string, string>()
  const files = new Map<string, UploadedFile>()
  try {
    for (const [name, value] of await new Response(new Uint8Array(body), { headers }).formData()) {
      if (typeof value === 'string') texts.set(name, value)
      else files.set(name, await uploaded(value))
    }
  } catch {
    return undefined
  }
  return { text: (name) => texts.get(name), file: (name) => files.get(name) }
}

async function uploaded(file: File): Promise<UploadedFile> {
  const contentType = file.type || 'application/octet-stream'
  return { name: file.name, contentType, bytes: Buffer.from(await file.arrayBuffer()) }
}
