/** Anthropic's endpoints for files. */
import {
  type Endpoint,
  type EndpointRequest,
  type Failure,
  json,
  type ParsedRequest,
} from '../dialect.js'
import type { StoredFile } from '../file-store.js'
import { resource } from '../resource.js'
import { failure, invalid } from './errors.js'

export const fileEndpoints: readonly Endpoint[] = [
  {
    method: 'POST',
    path: '/v1/files',
    read({ form, files }) {
      const file = form?.file('file')
      if (file === undefined) return invalid('file: Field required')
      return resource(({ createdMs }) =>
        json(fileOf(files.add({ ...file, purpose: 'user_data', createdMs }))),
      )
    },
  },
  {
    method: 'GET',
    path: '/v1/files',
    read: ({ files }) =>
      resource(() => {
        const data = files.list().map(fileOf)
        const ends = { first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
        return json({ data, ...ends, has_more: false })
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
        return json({ id, type: 'file_deleted' })
      }),
  },
]

function withFile(
  { files, params: { id } }: EndpointRequest,
  write: (file: StoredFile) => ReturnType<typeof json>,
): ParsedRequest | Failure {
  const file = files.get(id)
  return file === undefined ? failure(404, `File not found: ${id}`) : resource(() => write(file))
}

function fileOf({ id, name, contentType, createdMs, bytes }: StoredFile) {
  return {
    id,
    type: 'file',
    filename: name,
    mime_type: contentType,
    size_bytes: bytes.length,
    created_at: new Date(createdMs).toISOString(),
    downloadable: true,
  }
}
