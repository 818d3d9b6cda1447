// An OpenID Connect provider for the tests: any password logs in, and the name decides about groups.
import Provider from 'oidc-provider';

const [port, redirectUri] = process.argv.slice(2);
const groups = { kim: ['staff', 'poller-operator'], eve: ['sales'] };

const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: [
    {
      client_id: 'poller',
      client_secret: 'a secret: of the client+',
      redirect_uris: [redirectUri],
    },
  ],
  claims: { openid: ['sub'], profile: ['preferred_username'], groups: ['groups'] },
  scopes: ['openid', 'profile', 'groups'],
  pkce: { required: () => true, methods: ['S256'] },
  cookies: { keys: ['a key of the tests'] },
  async findAccount(_context, id) {
    return {
      accountId: id,
      claims: async () => ({ sub: id, preferred_username: id, groups: groups[id] ?? [] }),
    };
  },
});

provider.listen(Number(port), '127.0.0.1', () => console.log('ready'));
