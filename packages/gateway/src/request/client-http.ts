/** A client's request and the response to it, as Node's HTTP server presents them. */
export type { IncomingMessage as ClientRequest, ServerResponse as ClientResponse } from 'node:http'
