import { createServer, type AddressInfo, type Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Cleanup } from '../helpers/hub.ts'

/** Signed by itself, for 127.0.0.1. It guards nothing. */
export const certificate = `-----BEGIN CERTIFICATE-----
MIIBYzCCAQqgAwIBAgIBATAKBggqhkjOPQQDAjAYMRYwFAYDVQQDDA1kYXRhYmFz
ZS50ZXN0MCAXDTI0MDEwMTAwMDAwMFoYDzIxMjQwMTAxMDAwMDAwWjAYMRYwFAYD
VQQDDA1kYXRhYmFzZS50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE7LiC
VKXImbaPfE7aFbadJuVcFnG1xuLTA3r/UlV3koXY5QARXZpXe0Fkq/3D5rn9UpRV
JdM/A8IL+riglO9VoqNDMEEwDwYDVR0RBAgwBocEfwAAATAPBgNVHRMBAf8EBTAD
AQH/MB0GA1UdDgQWBBTmqDlaMqJPw8+yjROZXdIP3nnhHjAKBggqhkjOPQQDAgNH
ADBEAiA4tMagynhyTQe03COkt6Xldu2qcqKt9GPbF3x0bA2OYAIgbiyG5FiNRKYm
X49oPq2GGUrGI74Au7mVpqEiUs4ZgAc=
-----END CERTIFICATE-----
`
export const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgN1vYA6BKzy2+h1bf
FImMBj/ZROpbUkXjcGVqSi9qfrehRANCAATsuIJUpciZto98TtoVtp0m5VwWcbXG
4tMDev9SVXeShdjlABFdmld7QWSr/cPmuf1SlFUl0z8Dwgv6uKCU71Wi
-----END PRIVATE KEY-----
`

/** As PostgreSQL refuses a password. */
const refusal = (): Buffer => {
  const fields = Buffer.from('SFATAL\0C28P01\0Mno\0\0')
  const head = Buffer.from('E....')
  head.writeUInt32BE(fields.length + 4, 1)
  return Buffer.concat([head, fields])
}

/**
 * A PostgreSQL that speaks no further than TLS: who comes through that is told that the password is wrong.
 * @param tls whether it offers TLS; what comes instead is no beginning that it knows
 * @returns its port
 */
export async function startTlsPostgres (t: Cleanup, tls: boolean): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('data', () => {
      socket.write(tls ? 'S' : 'N')
      if (!tls) { socket.once('data', () => { socket.end() }); return }
      const secure = new TLSSocket(socket, { isServer: true, key, cert: certificate })
      secure.on('error', () => {})
      secure.once('data', () => { secure.end(refusal()) })
    })
  })
  await new Promise<void>((resolve) => { server.listen(0, resolve) })
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return (server.address() as AddressInfo).port
}
