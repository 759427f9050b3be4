// Addresses: what may be reached, by whom, and what answers may be.
import assert from 'node:assert/strict'
import type { LookupAddress } from 'node:dns'
import { test } from 'tap'
import { gzipSync, brotliCompressSync, deflateSync } from 'node:zlib'
import { UpstreamError } from '../../../protocol/errors.ts'
import { classifyAddress } from '../../../plugins/base/outbound/addresses.ts'
import { OutboundAllowlist } from '../../../plugins/base/outbound/policy.ts'
import { Outbound } from '../../../plugins/base/outbound/outbound.ts'
import { bypassesProxy } from '../../../plugins/base/outbound/connector.ts'
import { proxy, silent, tls, web } from '../../fakes/listeners.ts'
import { startHub, type Cleanup } from '../../helpers/hub.ts'

const MAX = { maxSize: 1024 * 1024, timeout: 60_000 }

/** An outbound client whose names are those of a table, and every name that it looked up. */
function outbound (
  t: Cleanup,
  { allow = '', names = {} }: { allow?: string; names?: Record<string, string[] | (() => string[])> } = {}
): { out: Outbound; lookups: string[] } {
  const lookups: string[] = []
  const out = new Outbound({
    allow,
    resolve: (name, _options, callback) => {
      lookups.push(name)
      const found = names[name]
      const addresses = (typeof found === 'function' ? found() : (found ?? [])).map((address): LookupAddress => ({
        address,
        family: address.includes(':') ? 6 : 4
      }))
      setImmediate(() => {
        if (addresses.length === 0) callback(Object.assign(new Error('no such host'), { code: 'ENOTFOUND' }), [])
        else callback(null, addresses)
      })
    }
  })
  t.after(async () => { await out.close() })
  return { out, lookups }
}

/** The error of a request that must fail. */
async function failing (promise: Promise<unknown>): Promise<UpstreamError> {
  const error: unknown = await promise.then(() => undefined, (reason: unknown) => reason)
  assert.ok(error instanceof UpstreamError, `expected an UpstreamError: ${String(error)}`)
  return error
}

/** Hosts of URLs that all lead to this machine or its network. */
const local = [
  '127.0.0.1', '127.1', '127.255.255.254', '2130706433', '0x7f000001', '0x7f.1', '0177.0.0.1', '017700000001',
  '0x7F.0x0.0x0.0x1', '127.0.0.1.', '%31%32%37.0.0.1', '１２７.０.０.１', '127。0。0。1', '0', '0.0.0.0', '0.1.2.3', '[::]',
  '[::1]', '[0:0:0:0:0:0:0:1]', '[0000::0001]', '[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::FFFF:0:0]',
  '[::127.0.0.1]', '[::7f00:1]', '[::ffff:0:127.0.0.1]', '[2002:7f00:1::]', '[2002:a00:1::1]', '[64:ff9b::127.0.0.1]',
  '[64:ff9b::a00:1]', '[64:ff9b:1::7f00:1]', '[64:ff9b:1::808:808]', '[2001:0:1:2::80ff:fffe]', '10.0.0.1',
  '172.16.0.1', '172.31.255.255', '192.168.1.1', '0xc0a80101', '100.64.0.1', '100.127.255.255', '198.18.0.1',
  '198.19.255.255', '192.0.0.1', '192.0.2.1', '198.51.100.1', '203.0.113.1', '224.0.0.1', '240.0.0.1',
  '255.255.255.255', '[fc00::1]', '[fd12:3456::1]', '[fec0::1]', '[feff::1]', '[ff02::1]', '[2001:db8::1]', '[100::1]',
  '[4000::1]', '[5f00::1]', '[3fff::1]', 'localhost', 'LOCALHOST', 'localhost.', 'a.localhost'
]

/** ... and those that nobody reaches. */
const never = [
  '169.254.169.254', '169.254.0.1', '169.254.170.2', '2852039166', '0xa9fea9fe', '0251.0376.0251.0376', '169.254.43518',
  '100.100.100.200', '168.63.129.16', '192.0.0.192', '[fe80::1]', '[febf::1]', '[fd00:ec2::254]', '[fd00:0ec2:0::0254]',
  '[fd20:ce::254]', '[::ffff:169.254.169.254]', '[::ffff:a9fe:a9fe]', '[::169.254.169.254]', '[::ffff:0:a9fe:a9fe]',
  '[2002:a9fe:a9fe::]', '[64:ff9b::169.254.169.254]', '[64:ff9b:1::a9fe:a9fe]', '[64:ff9b:1:a9fe:a9:fe00::]',
  '[64:ff9b:1:a9:fe:a9fe::]', '[::ffff:100.100.100.200]', '[2001:0:1:2::5601:5601]', 'metadata.google.internal',
  'METADATA.google.internal.', 'metadata.goog', 'metadata'
]
const open = [
  '8.8.8.8', '1.1.1.1', '172.32.0.1', '100.128.0.1', '198.20.0.1', '11.0.0.1', '[2606:4700::1111]', '[::ffff:8.8.8.8]',
  '[64:ff9b::808:808]', '[2002:808:808::1]', 'example.com', 'localhost.example.com',
  'metadata.google.internal.example.com'
]

test('every spelling of an address means what it means', async (t) => {
  const { out, lookups } = outbound(t)
  const untrusted = { trusted: false }
  const trusted = { trusted: true }
  for (const host of local) {
    assert.match(out.addressProblem(`http://${host}:8080/mcp`, untrusted) ?? '', /must be public\. OUTBOUND_ALLOW=/, host)
    assert.equal(out.addressProblem(`http://${host}:8080/mcp`, trusted), undefined, host)
    assert.equal((await failing(out.fetch(`http://${host}:9/`, { ...untrusted, ...MAX }))).fault, 'unreachable', host)
  }
  for (const host of never) {
    for (const reach of [trusted, untrusted]) {
      assert.match(out.addressProblem(`https://${host}/`, reach) ?? '', /to such addresses only if OUTBOUND_ALLOW contains/, host)
      assert.match((await failing(out.fetch(`http://${host}/`, { ...reach, ...MAX }))).message, /to such addresses only if/, host)
    }
  }
  for (const host of open) for (const reach of [trusted, untrusted]) assert.equal(out.addressProblem(`http://${host}/`, reach), undefined, host)
  assert.deepEqual(lookups, [], 'nothing of this needs looking up')
  // A zone stands in no URL, but in what names resolve to.
  for (const address of ['fe80::1%eth0', 'fe80::1%1', '169.254.169.254', 'fd00:ec2::254%eth0', 'nonsense', '']) {
    assert.equal(classifyAddress(address).level, 'never', address)
  }
  for (const bad of ['http://[fe80::1%25eth0]/', 'http://1.2.3.4.5/', 'http://256.256.256.256/', 'http://[::1/']) {
    assert.ok(!URL.canParse(bad), bad)
  }
})

test('only http and https, without user names', async (t) => {
  const { out } = outbound(t)
  const { port, connections } = await silent(t)
  for (const address of [
    'file:///etc/passwd', `ftp://127.0.0.1:${port}/`, `gopher://127.0.0.1:${port}/`, 'data:text/plain,x',
    `ws://127.0.0.1:${port}/`
  ]) {
    assert.match((await failing(out.fetch(address, { trusted: true, ...MAX }))).message, /only http and https/, address)
  }
  for (const address of [
    `http://example.com@127.0.0.1:${port}/`, `http://user:pass@127.0.0.1:${port}/`, `http://:pass@127.0.0.1:${port}/`
  ]) {
    assert.match((await failing(out.fetch(address, { trusted: true, ...MAX }))).message, /user name or password/, address)
    assert.match(out.addressProblem(address, { trusted: true }) ?? '', /user name or password/)
  }
  assert.equal(connections(), 0)
})

test('names are reached where they were checked, and nowhere else', async (t) => {
  const seen: string[] = []
  const far = await web(
    t,
    (request, response) => {
      seen.push(String(request.headers.host))
      response.writeHead(200, { connection: 'close' }).end('far')
    },
    '127.0.0.2'
  )
  const near = await silent(t, far.port)

  await t.test('a name that resolves to what is forbidden says so', async (t) => {
    const { out } = outbound(t, {
      names: {
        'in.example': ['127.0.0.1'],
        'ten.example': ['10.0.0.1', '10.0.0.2'],
        'cloud.example': ['169.254.169.254'],
        'six.example': ['::ffff:127.0.0.1'],
        'zone.example': ['fe80::1%lo'],
        'nat.example': ['64:ff9b::7f00:1']
      }
    })
    const why = async (name: string, trusted = false): Promise<string> =>
      (await failing(out.fetch(`http://${name}:${near.port}/`, { trusted, ...MAX }))).message
    assert.equal(
      await why('in.example'),
      'in.example resolves to 127.0.0.1, a loopback address; an address that was not stored by an admin must be public. ' +
      'OUTBOUND_ALLOW=127.0.0.1 allows this one'
    )
    assert.match(await why('ten.example'), /10\.0\.0\.1, a private address/)
    for (const trusted of [false, true]) {
      for (const name of ['cloud.example', 'zone.example']) {
        assert.match(await why(name, trusted), /link-local address; the gateway connects to such addresses only if/)
      }
    }
    assert.match(await why('six.example'), /loopback/)
    assert.match(await why('nat.example'), /loopback/)
    assert.match(await why('away.example'), /no such host/)
  })
  await t.test('addresses that are refused are left out', async (t) => {
    const { out } = outbound(t, { allow: '127.0.0.2', names: { 'both.example': ['127.0.0.1', '127.0.0.2', '::1'] } })
    assert.equal(String((await out.fetch(`http://both.example:${far.port}/`, { trusted: false, ...MAX })).body), 'far')
  })
  await t.test('a name that changes between look-ups', async (t) => {
    let turn = 0
    const { out, lookups } = outbound(t, {
      allow: '127.0.0.2',
      names: { 'turns.example': () => [turn++ === 0 ? '127.0.0.2' : '127.0.0.1'] }
    })
    assert.equal(String((await out.fetch(`http://turns.example:${far.port}/`, { trusted: false, ...MAX })).body), 'far')
    assert.equal(lookups.length, 1, 'what was checked is what was dialled')
    assert.match(
      (await failing(out.fetch(`http://turns.example:${far.port}/`, { trusted: false, ...MAX }))).message,
      /resolves to 127\.0\.0\.1/
    )
    assert.equal(lookups.length, 2)
    assert.equal(seen.at(-1), `turns.example:${far.port}`, 'Host keeps the name')
  })
  await t.test('a connection that stands is used again, without looking the name up', async (t) => {
    const kept = await web(t, (_request, response) => { response.end('kept') }, '127.0.0.2')
    const { out, lookups } = outbound(t, { names: { 'kept.example': ['127.0.0.2'] } })
    for (let n = 0; n < 20; n++) await out.fetch(`http://kept.example:${kept.port}/`, { trusted: true, ...MAX })
    assert.ok(lookups.length <= 2, `${lookups.length} look-ups`)
    // who is not trusted does not travel on the connections of those who are
    assert.equal((await failing(out.fetch(`http://kept.example:${kept.port}/`, { trusted: false, ...MAX }))).fault, 'unreachable')
  })
  await t.test('TLS names the host, not the address', async (t) => {
    const { port, names } = await tls(t)
    const { out } = outbound(t, { names: { 'tls.example': ['127.0.0.1'] } })
    await failing(out.fetch(`https://tls.example:${port}/`, { trusted: true, ...MAX }))
    assert.deepEqual(names, ['tls.example'])
  })

  assert.equal(near.connections(), 0, 'nobody may have come here')
})

test('OUTBOUND_ALLOW widens what may be reached', async (t) => {
  const { out } = outbound(t, {
    allow: '10.0.0.0/8, 127.0.0.1,[fd00::1], fe80::/10,169.254.169.254 , wiki.lan,*.corp.example,',
    names: { 'wiki.lan': ['192.168.0.1', '169.254.1.1'], 'bare.example': ['192.168.0.1'] }
  })
  const reached = (host: string, trusted = false): boolean => out.addressProblem(`http://${host}/`, { trusted }) === undefined
  for (const host of ['10.1.2.3', '0xa010203', '[::ffff:10.1.2.3]', '127.0.0.1', '[fd00::1]', '[fe80::1]', '169.254.169.254']) {
    assert.ok(reached(host), host)
  }
  for (const host of ['127.0.0.2', '[fd00::2]', '192.168.0.1', '169.254.169.253', 'localhost', 'metadata.google.internal']) {
    assert.ok(!reached(host), host)
  }

  const allowed = new OutboundAllowlist('wiki.lan,*.corp.example')
  for (const name of ['wiki.lan', 'a.corp.example', 'a.b.corp.example']) assert.ok(allowed.hasName(name), name)
  for (const name of ['corp.example', 'x.wiki.lan', 'evilcorp.example', 'wiki.lan.example']) assert.ok(!allowed.hasName(name), name)

  await t.test('a host opens private addresses behind its name, metadata takes the address', async (t) => {
    const here = await web(t, (_request, response) => { response.end('here') })
    const names = { 'wiki.lan': ['127.0.0.1'], 'meta.lan': ['169.254.169.254'] }
    const { out } = outbound(t, { allow: 'wiki.lan,meta.lan', names })
    assert.equal(String((await out.fetch(`http://wiki.lan:${here.port}/`, { trusted: false, ...MAX })).body), 'here')
    assert.match((await failing(out.fetch(`http://meta.lan:${here.port}/`, { trusted: false, ...MAX }))).message, /to such addresses only if/)
  })

  for (const bad of [
    '10.0.0.0/33', '10.0.0', '256.1.1.1', 'http://x', 'a b', '*', '*.', 'fe80::/129', '10.0.0.0/8;x', '0x7f.1', 'a/8',
    '-x', 'x..y'
  ]) {
    assert.throws(
      () => new OutboundAllowlist(bad),
      (error: Error) => error.message.includes('OUTBOUND_ALLOW') && error.message.includes(JSON.stringify(bad)),
      bad
    )
  }
  await t.test('what cannot be read ends the start', async (t) => {
    await assert.rejects(startHub(t, { env: { OUTBOUND_ALLOW: '127.0.0.1,10.0.0.0/99' } }), /OUTBOUND_ALLOW cannot contain "10\.0\.0\.0\/99"/)
  })
})

test('redirects stay within the origin', async (t) => {
  const elsewhere = await silent(t)
  const seen: Array<{ method: string, url: string, authorization: string | undefined, body: string }> = []
  const site = await web(t, (request, response) => {
    let body = ''
    request.on('data', (chunk) => { body += String(chunk) }).on('end', () => {
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://x')
      seen.push({ method: request.method ?? '', url: request.url ?? '', authorization: request.headers.authorization, body })
      const hops = Number(searchParams.get('hops') ?? 0)
      if (pathname === '/out') {
        response.writeHead(Number(searchParams.get('status')), { location: searchParams.get('to') ?? '' })
          .end('a page that nobody should see')
      } else if (hops > 0) {
        response
          .writeHead(Number(searchParams.get('status') ?? 307), {
            location: `/x?hops=${hops - 1}&status=${searchParams.get('status') ?? 307}`
          })
          .end()
      } else response.end('arrived')
    })
  })
  const { out } = outbound(t)
  const get = async (path: string, more: object = {}): Promise<string> =>
    String((await out.fetch(`${site.url}${path}`, { trusted: true, headers: { authorization: 'Bearer canary' }, ...MAX, ...more })).body)

  for (const status of [301, 302, 303, 307, 308]) {
    for (const hops of [1, 3]) assert.equal(await get(`/x?hops=${hops}&status=${status}`), 'arrived')
    assert.match((await failing(get(`/x?hops=4&status=${status}`))).message, /more than 3 times/)
    for (const to of [
      `http://127.0.0.1:${elsewhere.port}/`, `https://127.0.0.1:${site.port}/`, `http://localhost:${site.port}/`,
      `//127.0.0.1:${elsewhere.port}/x`, 'file:///etc/passwd', 'http://169.254.169.254/latest'
    ]) {
      const error = await failing(get(`/out?status=${status}&to=${encodeURIComponent(to)}`))
      assert.match(error.message, /another origin/, to)
      assert.equal(error.fault, 'refused')
      assert.ok(!error.message.includes('nobody should see'))
    }
    assert.match((await failing(get(`/out?status=${status}&to=${encodeURIComponent('http://[')}`))).message, /without a valid address/)
  }
  for (const status of [307, 308]) {
    assert.equal(await get(`/x?hops=2&status=${status}`, { method: 'POST', body: 'kept' }), 'arrived')
    assert.deepEqual(seen.slice(-3).map(({ method, body, authorization }) => [method, body, authorization]),
      [0, 1, 2].map(() => ['POST', 'kept', 'Bearer canary']))
  }
  for (const status of [301, 302]) {
    assert.match((await failing(get(`/x?hops=1&status=${status}`, { method: 'POST', body: 'kept' }))).message, /would lose its body/)
  }
  assert.equal(await get('/x?hops=2&status=303', { method: 'POST', body: 'kept', headers: { 'Content-Type': 'text/plain' } }), 'arrived')
  assert.deepEqual(seen.slice(-3).map(({ method, body }) => [method, body]), [['POST', 'kept'], ['GET', ''], ['GET', '']])
  assert.equal(elsewhere.connections(), 0)
})

test('answers are bounded in size and time', async (t) => {
  const bomb = gzipSync(Buffer.alloc(8 * 1024 * 1024))
  const plainText = Buffer.from('plain text '.repeat(100))
  const bodies: Record<string, [Record<string, string>, Buffer]> = {
    '/plain': [{}, plainText],
    '/gzip': [{ 'content-encoding': 'gzip' }, gzipSync(plainText)],
    '/x-gzip': [{ 'content-encoding': 'X-GZip' }, gzipSync(plainText)],
    '/br': [{ 'content-encoding': 'br' }, brotliCompressSync(plainText)],
    '/deflate': [{ 'content-encoding': 'deflate' }, deflateSync(plainText)],
    '/identity': [{ 'content-encoding': 'identity' }, plainText],
    '/bomb': [{ 'content-encoding': 'gzip' }, bomb],
    '/chain': [{ 'content-encoding': 'gzip, gzip' }, gzipSync(gzipSync(plainText))],
    '/unknown': [{ 'content-encoding': 'zstd' }, plainText],
    '/broken': [{ 'content-encoding': 'gzip' }, Buffer.from('not gzip at all')],
    '/large': [{}, Buffer.alloc(1024 * 1024 + 1)],
    '/headers': [{ 'x-large': 'x'.repeat(15_000), 'x-larger': 'x'.repeat(15_000) }, plainText],
    '/empty': [{ 'content-encoding': 'gzip' }, Buffer.alloc(0)]
  }
  const site = await web(t, (request, response) => {
    const answer = bodies[request.url ?? '']
    if (answer) response.writeHead(request.url === '/empty' ? 204 : 200, answer[0]).end(answer[1])
    else if (request.url === '/offer') response.end(`${request.headers['accept-encoding']}; ${request.headers['user-agent']}`)
    else if (request.url === '/slow') {
      const timer = setInterval(() => { response.write('x') }, 50)
      response.on('close', () => { clearInterval(timer) })
    } else if (request.url === '/error') response.writeHead(503, { 'x-why': 'because' }).end('out of order')
    else if (request.url === '/cut') {
      response.writeHead(200, { 'content-length': '100' }).write('x')
      setTimeout(() => { response.destroy() }, 20)
    }
  })
  const { out } = outbound(t)
  const get = async (path: string, more: object = {}) => await out.fetch(`${site.url}${path}`, { trusted: true, ...MAX, ...more })

  for (const path of ['/plain', '/gzip', '/x-gzip', '/br', '/deflate', '/identity']) {
    assert.ok((await get(path)).body.equals(plainText), path)
  }
  assert.equal((await get('/empty')).body.length, 0)
  assert.equal(String((await get('/offer')).body), 'gzip, br; tool-hub')
  assert.equal(String((await get('/offer', { headers: { 'user-agent': 'own' } })).body), 'gzip, br; own')
  assert.equal((await get('/plain', { maxSize: plainText.length })).body.length, plainText.length)
  assert.match((await failing(get('/plain', { maxSize: plainText.length - 1 }))).message, /too large: more than 1099 bytes/)
  for (const path of ['/large', '/bomb']) assert.match((await failing(get(path))).message, /too large: more than 1048576 bytes/, path)
  for (const path of ['/chain', '/unknown', '/broken']) assert.match((await failing(get(path))).message, /cannot be decompressed/, path)
  assert.match((await failing(get('/headers'))).message, /headers of .* are too large/)
  const error = await get('/error')
  assert.deepEqual([error.status, error.headers['x-why'], String(error.body)], [503, 'because', 'out of order'])
  assert.equal((await failing(get('/cut'))).fault, 'broken')

  const late = await failing(get('/slow', { timeout: 300 }))
  assert.equal(late.fault, 'timeout')
  assert.match(late.message, /did not answer within 0\.3 s/)
  for (const timeout of [60_000, undefined]) {
    const controller = new AbortController()
    const closed = failing(get('/slow', { timeout, signal: controller.signal }))
    setImmediate(() => { controller.abort() })
    assert.equal((await closed).fault, 'closed')
  }
  assert.equal((await failing(get('/plain', { signal: AbortSignal.abort() }))).fault, 'closed')
})

test('a proxy reaches names that it looks up itself', async (t) => {
  const site = await web(t, (_request, response) => { response.end('behind the proxy') })
  const way = await proxy(t)
  const { out, lookups } = outbound(t, { names: { 'proxy.example': ['127.0.0.1'], 'evil.example': ['169.254.169.254'] } })
  const get = async (url: string, more: object = {}) => await out.fetch(url, { trusted: true, proxy: { url: way.url }, ...MAX, ...more })

  assert.equal(String((await get(`http://only-the-proxy-knows.example:${site.port}/`)).body), 'behind the proxy')
  assert.deepEqual([way.asked.map(({ target }) => target), lookups], [[`only-the-proxy-knows.example:${site.port}`], []])
  await get(`http://127.0.0.1:${site.port}/`, { proxy: { url: `http://user:p%40ss@proxy.example:${way.port}` } })
  assert.equal(way.asked[1]?.authorization, `Basic ${Buffer.from('user:p@ss').toString('base64')}`)
  assert.deepEqual(lookups, ['proxy.example'])
  await get(`http://127.0.0.1:${site.port}/`, { proxy: { url: `http://100%25:%@127.0.0.1:${way.port}` } })
  assert.equal(way.asked.pop()?.authorization, `Basic ${Buffer.from('100%:%').toString('base64')}`)

  // one agent a proxy: the second request travels in the first one's tunnel
  await get(`http://only-the-proxy-knows.example:${site.port}/`)
  assert.equal(way.asked.length, 2)
  // TLS goes through it too
  const { port, names } = await tls(t)
  await failing(get(`https://only-the-proxy-knows.example:${port}/`))
  assert.deepEqual([way.asked.length, names], [3, ['only-the-proxy-knows.example']])

  for (const host of ['169.254.169.254', '[::ffff:169.254.169.254]', 'metadata.google.internal']) {
    assert.match((await failing(get(`http://${host}/`))).message, /to such addresses only if/, host)
  }
  for (const url of ['http://169.254.169.254:3128', 'http://evil.example:3128', 'http://metadata.google.internal']) {
    assert.match((await failing(get(site.url, { proxy: { url } }))).message, /to such addresses only if/, url)
  }
  for (const url of ['socks5://127.0.0.1:1080', 'nonsense']) {
    assert.match((await failing(get(site.url, { proxy: { url } }))).message, /"proxy\.url" must be/)
  }
  assert.match((await failing(get('http://8.8.8.8/', { trusted: false }))).message, /"proxy" works only in servers that an admin stored/)
  assert.equal(way.asked.length, 3)

  assert.match(
    (await failing(get(site.url, { proxy: { url: 'http://127.0.0.1:9' } }))).message,
    /cannot reach the proxy 127\.0\.0\.1:9: ECONNREFUSED/
  )
  const closed = await proxy(t, true)
  assert.match(
    (await failing(get('http://there.example/', { proxy: { url: closed.url } }))).message,
    /refused a tunnel to there\.example:80 \(HTTP 403\)/
  )

  const direct = await get(site.url, { proxy: { url: way.url, noProxy: 'x.example, 127.0.0.1' } })
  assert.equal(String(direct.body), 'behind the proxy')
  assert.equal(way.asked.length, 3)
  // what MCPHub kept under this name says nothing of HTTP
  assert.equal(String((await get(site.url, { proxy: { enabled: true, type: 'socks5', host: '10.0.0.1' } })).body), 'behind the proxy')

  const by: Array<[string, string, boolean]> = [
    ['*', 'http://a.example/', true],
    ['', 'http://a.example/', false],
    ['a.example', 'http://a.example/', true],
    ['a.example', 'http://b.a.example/', false],
    ['.a.example', 'http://b.a.example/', true],
    ['.a.example', 'http://a.example/', true],
    ['.a.example', 'http://ba.example/', false],
    ['A.Example.', 'http://a.example/', true],
    ['x, y ,a.example', 'http://a.example/', true],
    ['a.example:8080', 'http://a.example:8080/', true],
    ['a.example:8080', 'http://a.example/', false],
    ['a.example:443', 'https://a.example/', true],
    ['[::1]', 'http://[::1]:3000/', true],
    ['::1', 'http://[::1]/', true],
    ['[::1]:3000', 'http://[::1]:3000/', true],
    ['[::1]:3000', 'http://[::1]/', false]
  ]
  for (const [noProxy, url, expected] of by) assert.equal(bypassesProxy(noProxy, new URL(url)), expected, `${noProxy} ${url}`)
})
