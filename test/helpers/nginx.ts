// Debian's nginx with the configuration of examples/nginx-replicas.conf; it needs `apt-get install nginx`.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { temporaryFolder } from '../fakes/store-file.ts'
import { freePort, path, until, type Cleanup } from './hub.ts'

export const example = async (): Promise<string> => await readFile(path('examples/nginx-replicas.conf'), 'utf8')

/** What replicas behind it have in their environment. */
export const behindNginx = { ALLOWED_HOSTS: 'hub.example.com', TRUST_PROXY: '127.0.0.1' }

/**
 * Starts nginx with the example as it stands, but for what a test cannot have: ports, certificates, and a folder of its own.
 * @returns its URL, the file with the site, and the process that reloads it at SIGHUP
 */
export async function startNginx (t: Cleanup, ports: readonly [number, number]): Promise<{ url: string, site: string, pid: number }> {
  assert.equal(spawnSync('nginx', ['-v']).status, 0, 'these tests need nginx: apt-get install nginx')
  const folder = await temporaryFolder(t)
  const port = await freePort()
  const file = join(folder, 'nginx.conf')
  let site = await example()
  for (const [from, to] of [
    ['server 127.0.0.1:3001', `server 127.0.0.1:${ports[0]}`],
    ['server 127.0.0.1:3002', `server 127.0.0.1:${ports[1]}`], ['listen 443 ssl;', `listen 127.0.0.1:${port};`],
    ['ssl_certificate     /etc/ssl/hub.example.com.pem;', ''], ['ssl_certificate_key /etc/ssl/hub.example.com.key;', '']
  ] as const) {
    assert.equal(site.split(from).length, 2, `the example does not say ${from}`)
    site = site.replace(from, to)
  }
  const own = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')
  const user = process.geteuid?.() === 0 ? 'user root;' : ''
  await writeFile(
    file,
    `${user} worker_processes 2; pid ${folder}/pid; error_log ${folder}/error.log;\nevents {}\nhttp { access_log ${folder}/access.log; ${own}\n${site}\n}\n`
  )
  const args = ['-p', folder, '-c', file, '-e', join(folder, 'error.log'), '-g', 'daemon off;']
  const child = spawn('nginx', args, { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (chunk) => { said += String(chunk) })
  t.after(async () => {
    child.kill('SIGTERM')
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
  })
  const url = `http://127.0.0.1:${port}`
  await until(async () => (await fetch(`${url}/health`)).ok, () => `nginx does not serve: ${said}`)
  return { url, site: file, pid: Number(child.pid) }
}
