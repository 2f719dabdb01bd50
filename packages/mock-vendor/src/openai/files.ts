/** OpenAI's endpoints for files. */
import {
  type Endpoint,
  type EndpointRequest,
  type Failure,
  json,
  type ParsedRequest,
} from '../dialect.js'
import type { StoredFile } from '../file-store.js'
import { resource } from '../resource.js'
import { failure, missing } from './errors.js'

export const fileEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/v1/files',
    read({ form, files }) {
      if (form === undefined) return failure(400, 'The request body is not multipart/form-data.')
      const file = form.file('file')
      if (file === undefined) return missing('file')
      const purpose = form.text('purpose')
      if (purpose === undefined) return missing('purpose')
      return resource(({ createdMs }) => json(fileOf(files.add({ ...file, purpose, createdMs }))))
    },
  },
  {
    method: 'GET',
    path: '/v1/files',
    read: ({ files }) =>
      resource(() => {
        const data = files.list().map(fileOf)
        const ends = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
        return json({ object: 'list', data, ...ends, has_more: false })
      }),
  },
  {
    method: 'GET',
    path: '/v1/files/{id}',
    read: (request) => withFile(request, (file) => json(fileOf(file))),
  },
  {
    method: 'GET',
    path: '/v1/files/{id}/content',
    read: (request) =>
      withFile(request, ({ contentType, bytes }) => ({ contentType, body: bytes })),
  },
  {
    method: 'DELETE',
    path: '/v1/files/{id}',
    read: (request) =>
      withFile(request, ({ id }) => {
        request.files.remove(id)
        return json({ id, object: 'file', deleted: true })
      }),
  },
]

function withFile(
  { files, params: { id } }: EndpointRequest,
  write: (file: StoredFile) => ReturnType<typeof json>,
): ParsedRequest | Failure {
  const file = files.get(id)
  if (file === undefined) return failure(404, `No such File object: ${id}`)
  return resource(() => write(file))
}

function fileOf({ id, name, purpose, createdMs, bytes }: StoredFile) {
  return {
    id,
    object: 'file',
    bytes: bytes.length,
    created_at: Math.floor(createdMs / 1_000),
    filename: name,
    purpose,
    status: 'processed',
  }
}
