/* eslint no-template-curly-in-string: off -- configs hold them */
// Where the variables of users may stand, what may be given for them, and what becomes of a config.
import assert from 'node:assert/strict'
import { test } from 'tap'
import { expandVariables } from '../../plugins/upstream/links/environment.ts'
import { canReuseConnection } from '../../plugins/upstream/links/connection-config.ts'
import { maskConfig } from '../../plugins/base/secrets/mask-config.ts'
import { configProblem, isolationOf, type ServerConfig } from '../../schemas/server.ts'
import { missingVariables, userVariableTargetFingerprint, valueProblem, withoutMissingValues } from '../../schemas/user-variables.ts'

const userVariables = [{ name: 'T' }, { name: 'OPT', required: false }]
const remote = (more: ServerConfig): ServerConfig => ({ url: 'https://h.example/mcp', userVariables, ...more })
const command = (more: ServerConfig): ServerConfig => ({ command: 'run', userVariables, ...more })

test('places where a variable of users may stand', async () => {
  const allowed: ServerConfig[] = [
    remote({ headers: { Authorization: 'Bearer ${user.T}', 'X-Both': '${user.T}:${user.OPT} ${HOME}' } }),
    remote({ url: 'https://h.example/${user.T}/bot${user.T}/mcp?key=${user.T}&note=a${user.OPT}' }),
    remote({ url: 'https://${HOST}/${user.T}' }),
    command({ env: { TOKEN: '${user.T}', GITHUB_TOKEN: '${user.OPT}', NODE_AUTH_TOKEN: '${user.T}' } }),
    command({ args: ['-x', '${user.T}', '--token=${user.T}', '--note=${user.OPT}'] }),
    command({ args: ['-c', 'server', '${user.T}', '--config', '${user.T}', '--name', '${user.T}'] }),
    remote({ description: 'Give ${user.ANYTHING}' })
  ]
  for (const config of allowed) assert.equal(configProblem(config), undefined, JSON.stringify(config))
})

test('places where a variable of users may not stand', async () => {
  const refused: Array<[ServerConfig, RegExp]> = [
    [{ command: '${user.T}', userVariables }, /only in values of "headers", "env", "args" and "url"/],
    [command({ cwd: '/home/${user.T}' }), /only/],
    [command({ args: ['x${user.T}'] }), /"args\.0"/],
    [command({ args: ['-t=${user.T}'] }), /"args\.0"/],
    [command({ args: ['--token=x${user.T}'] }), /"args\.0"/],
    [command({ args: ['${user.T}${user.T}'] }), /"args\.0"/],
    [command({ env: { TOKEN: 'x${user.T}' } }), /"env\.TOKEN"/],
    [command({ env: { '${user.T}': 'x' } }), /only/],
    ...[
      'PATH', 'NODE_OPTIONS', 'node_options', 'LD_PRELOAD', 'DYLD_INSERT_LIBRARIES', 'PYTHONPATH', 'PYTHONSTARTUP', 'BASH_ENV',
      'ENV', 'SHELL', 'RUBYOPT', 'PERL5OPT', 'GIT_SSH_COMMAND', 'npm_config_registry', 'JAVA_TOOL_OPTIONS', 'UV_INDEX_URL',
      'ERL_FLAGS', 'R_PROFILE_USER', 'JULIA_LOAD_PATH', 'DOCKER_HOST'
    ].map((name): [ServerConfig, RegExp] => [command({ env: { [name]: '${user.T}' } }), /determines which code runs/]),
    ...['SSLKEYLOGFILE', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY', 'no_proxy', 'SSL_CERT_FILE', 'REQUESTS_CA_BUNDLE']
      .map((name): [ServerConfig, RegExp] => [command({ env: { [name]: '${user.T}' } }), /determines where traffic goes/]),
    ...['-c', '-lc', '-e', '-pe', '--eval', '-Command', '-EncodedCommand', '/c', '--import'].flatMap((option): Array<[ServerConfig, RegExp]> => [
      [command({ args: [option, '${user.T}'] }), /"args\.1": users cannot set the value of ".*determines which code runs/],
      [command({ args: [option, '--a=${user.T}'] }), /"args\.1".*determines which code runs/]
    ]),
    [command({ args: ['--eval=${user.T}'] }), /"args\.0": users cannot set the value of "--eval"/],
    [remote({ headers: { 'X-${user.T}': 'x' } }), /only/],
    [remote({ headers: { Host: '${user.T}' } }), /"headers\.Host"/],
    [remote({ headers: { A: '${user.NONE}' } }), /"\$\{user\.NONE\}" is not in "userVariables"/],
    [remote({ headers: { A: '${user.}' } }), /needs the name/],
    [{ url: 'https://h.example/', headers: { A: '${user.T}' } }, /is not in "userVariables"/],
    ...[
      'https://${user.T}/mcp', '${user.T}://h.example', 'https://h.example:${user.T}/', 'https://${user.T}@h.example/', '${user.T}',
      'https:${user.T}', 'https:/${user.T}/', 'https:///${user.T}/', 'https:\\\\${user.T}/', 'https://h.example\\${user.T}',
      'https://h.example/#${user.T}'
    ].map((url): [ServerConfig, RegExp] => [remote({ url }), /"url": .*only in a path segment or a query value/]),
    [remote({ url: 'https://h.example/?${user.T}=1' }), /not in its name/],
    [remote({ url: 'https://h.example/?${user.T}' }), /not in its name/],
    [remote({ url: 'https://h.example/${user.OPT}' }), /not "required"/],
    [remote({ proxy: { url: 'http://${user.T}/' } }), /only/],
    [remote({ oauth: { clientSecret: '${user.T}' } }), /only/],
    [remote({ passthroughHeaders: ['${user.T}'] }), /only/],
    [{ ...remote({}), userVariables: [{ name: 'T' }, { name: 'T' }] }, /two variables with the same name/]
  ]
  for (const [config, problem] of refused) assert.match(configProblem(config) ?? 'none', problem, JSON.stringify(config))
})

test('no user decides what a known launcher runs, or how', async () => {
  const runs = (line: string): ServerConfig => {
    const [name = '', ...args] = line.split(' ').map((word) => word === 'T' ? '${user.T}' : word.replace('=T', '=${user.T}'))
    return command({ command: name, args })
  }
  const refused = [
    'npx T', 'npx -y T', '/usr/bin/npx --yes T', 'npx.cmd T', 'npx -p T pkg', 'npx --package=T pkg', 'npx --unknown pkg T', 'npm exec T', 'npm exec -- T',
    'pnpm dlx T', 'yarn dlx T', 'bunx T', 'bun x T', 'bun run T', 'uvx T', 'uvx --from T tool', 'uvx --from=T tool', 'uvx --with T tool', 'uv run T',
    'uv tool run T', 'uv run --with=T server.py', 'pipx run T', 'pipx run --spec T app', 'python T', 'python3.12 -u T', 'python -m T', 'python -W T x.py',
    'docker run T', 'docker run --rm -i T', 'docker run -u 1000 T', 'docker run -v T image', 'docker run --volume=T image', 'docker run --entrypoint=T image',
    'docker run --privileged T', 'podman run --name x T', 'docker compose -f T up', 'docker run node:22 T', 'node T', 'node --require T x.js',
    'node --env-file=T x.js', 'node --no-warnings T', 'node --conditions x T', 'deno run -A T', 'java -jar T', 'java -cp T Main', 'sh T', 'bash -l T',
    'cmd /c npx pkg T', 'powershell -Command tool T', 'env T', 'env A=b node T', 'sudo node T', 'timeout 60 npx T', 'npx tsx T', 'npx -y node@20 T',
    'deno eval T', 'docker exec c T', 'docker exec c tool T', 'npm install T', 'pnpm add pkg T', 'dumb-init npx T', 'dumb-init -- T', 'stdbuf -o0 T',
    'gosu nobody T', 'xargs T', 'ssh host T'
  ]
  for (const line of refused) {
    assert.match(configProblem(runs(line)) ?? 'none', /"args\.\d": users cannot set (?:what|the value of) .* (runs, or how: write the package, image or script first|determines which code runs)/, line)
  }
  const allowed = [
    'npx pkg T', 'npx -y @scope/pkg@1.2.3 T', 'npx -y -p dep pkg --token=T', 'npm exec --yes -- pkg T', 'pnpm dlx pkg T', 'bunx pkg T', 'uvx server T',
    'uvx --from git+https://h.example/x server --token=T', 'uv --directory /srv run server.py T', 'uv run --with mcp mcp T', 'pipx run app T', 'python server.py T',
    'python3 -u -m package T', 'docker run --rm -i -e TOKEN mcp/image T', 'docker run -i --network=host ghcr.io/x/image:1 --token=T', 'node server.js T',
    'node --import tsx server.ts --token=T', 'node --experimental-strip-types --no-warnings server.ts T', 'node -e code -- --token=T T', 'deno run -A --allow-net npm:pkg T',
    'java -Xmx512m -jar server.jar T', 'sh server.sh T', 'bash -c code name T', 'env A=b node server.js T', 'npx -y tsx server.ts T', 'dumb-init -- node server.js T', 'stdbuf -oL own T', '/opt/own-server T', 'own T --x T'
  ]
  for (const line of allowed) assert.equal(configProblem(runs(line)), undefined, line)
})

test('values that may not be given', async () => {
  const config = { ...command({ args: ['${user.T}'] }) }
  const header = remote({ headers: { A: '${user.T}' } })
  const path = remote({ url: 'https://h.example/${user.T}/mcp' })
  assert.equal(valueProblem(config, 'T', 'a'.repeat(8 * 1024)), undefined)
  assert.match(valueProblem(config, 'T', 'a'.repeat(8 * 1024 + 1)) ?? '', /8 KiB/)
  assert.match(valueProblem(config, 'T', 'ä'.repeat(4 * 1024 + 1)) ?? '', /8 KiB/)
  for (const bad of ['a\nb', 'a\0', '\u007f', '\u0085', '\ud800']) assert.match(valueProblem(config, 'T', bad) ?? '', /control/, JSON.stringify(bad))
  assert.match(valueProblem(config, 'T', '--eval=x') ?? '', /begins with "-"/)
  assert.equal(valueProblem(header, 'T', '-x'), undefined)
  assert.match(valueProblem(header, 'T', '→') ?? '', /not allowed in a header/)
  for (const dots of ['.', '..', '...']) assert.match(valueProblem(path, 'T', dots) ?? '', /relative path segment/)
  assert.match(valueProblem(path, 'T', '') ?? '', /empty/)
})

test('a config with the values of a user', async () => {
  const fill = (config: ServerConfig, given: Record<string, string>): ServerConfig => {
    const values = new Map(Object.entries(given))
    return expandVariables(withoutMissingValues(config, values), { HOME: '/root', LEAK: '${user.T}', SECRET: 's3' }, values).config
  }
  const url = 'https://h.example/${user.T}/bot${user.T}?key=${user.T}&note=${user.OPT}&last'
  const evil = '../x?y=1&z#%2e /@h\\'
  const filled = new URL(fill(remote({ url }), { T: evil }).url ?? '')
  assert.deepEqual([filled.origin, filled.pathname.split('/').length, filled.searchParams.get('key'), filled.hash], ['https://h.example', 3, evil, ''])
  assert.equal(decodeURIComponent(filled.pathname.split('/')[1] ?? ''), evil)
  assert.equal(fill(remote({ url: 'https://h.example/?note=${user.OPT}' }), { T: 'x' }).url, 'https://h.example/')
  // What a user gives is not expanded, and what the environment holds is no place for it.
  const headers = { A: 'Bearer ${user.T}', B: '${LEAK}', C: 'x${user.OPT}', D: '${HOME}' }
  assert.deepEqual(fill(remote({ headers }), { T: '${SECRET}' }).headers, { A: 'Bearer ${SECRET}', B: '${user.T}', D: '/root' })
  const config = command({ args: ['a', '--note=${user.OPT}', '${user.T}'], env: { T: '${user.T}', N: '${user.OPT}' } })
  assert.deepEqual(fill(config, { T: 'v' }).args, ['a', 'v'])
  assert.deepEqual(fill(config, { T: 'v' }).env, { T: 'v' })
  // An API description is that of all users: no value is sent with another user's calls, or determines its host.
  const schema = { openapi: '3.0.0', servers: [{ url: 'https://${user.T}@h.example/?key=${user.T}' }] }
  assert.deepEqual(fill({ type: 'openapi', userVariables, openapi: { schema } }, { T: 'evil.example/' }).openapi?.schema, schema)
  // Also in a config that a user without admin rights wrote.
  assert.deepEqual(fill({ ...remote({ headers: { A: '${user.T} ${SECRET}' } }), storedByUser: true }, { T: 'v' }).headers, { A: 'v ${SECRET}' })
  assert.deepEqual(missingVariables(config, new Map([['OPT', 'x']])), ['T'])
  assert.equal(isolationOf({ ...config, isolation: 'shared' }), 'user')
})

test('what makes values of users be asked for again, and what does not', async () => {
  const target = (config: ServerConfig): string => userVariableTargetFingerprint(config)
  const base = remote({ headers: { A: 'Bearer ${user.T}', X: 'fixed' }, createdAt: 'then' })
  const same: ServerConfig[] = [
    { ...base, description: 'other' },
    { ...base, visibility: 'public', owner: 'bob', enabled: false },
    { ...base, url: 'https://h.example:443/another?path' },
    { ...base, headers: { X: 'changed', a: 'Token ${user.T}' } },
    { ...base, userVariables: [{ name: 'T', title: 'Your token' }] },
    { ...base, options: { timeout: 1_000 } }
  ]
  for (const config of same) assert.equal(target(config), target(base), JSON.stringify(config))
  const others: ServerConfig[] = [
    { ...base, url: 'http://h.example/mcp' },
    { ...base, url: 'https://h.example:8443/mcp' },
    { ...base, url: 'https://h.example.evil/mcp' },
    { ...base, headers: { B: 'Bearer ${user.T}' } },
    { ...base, headers: { ...base.headers, B: '${user.T}' } },
    { ...base, url: 'https://h.example/${user.T}' },
    { ...base, proxy: { url: 'http://proxy.example' } },
    { ...base, createdAt: 'later' }
  ]
  for (const config of others) assert.notEqual(target(config), target(base), JSON.stringify(config))
  const started = command({ args: ['pkg', '${user.T}'], env: { E: '${user.T}' } })
  for (const config of [
    { ...started, command: 'other' }, { ...started, args: ['evil', '${user.T}'] }, { ...started, env: { F: '${user.T}' } }
  ]) assert.notEqual(target(config), target(started), JSON.stringify(config))
  assert.equal(target({ ...started, env: { ...started.env, FIXED: 'x' } }), target(started))
  // The gateway's connection has the owner's values.
  assert.equal(canReuseConnection(base, { ...base, description: 'x' }), true)
  assert.equal(canReuseConnection(base, { ...base, owner: 'bob' }), false)
})

test('variables of users are shown, what stands around them is masked', async () => {
  const config = {
    url: 'https://h.example/${user.T}?key=${user.T}',
    headers: { A: 'Bearer ${user.T}', B: 'a secret:${user.T}' },
    env: { T: '${user.T}' },
    args: ['--token=${user.T}', '${user.T}'],
    userVariables: [{ name: 'T', secret: true, description: 'at https://h.example/?token=here' }]
  }
  assert.deepEqual(maskConfig(config), { ...config, headers: { ...config.headers, B: '••••${user.T}' } })
})
