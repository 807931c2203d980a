// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
// clients.js FOLDER LIBRARY WHERE PROTOCOL TENANT: asks sluiced as a program would that uses the
// library (ioredis, redis) from FOLDER/node_modules, with no settings but where (host:port or a path)
// and the protocol's version, if it is 2 or 3. Prints what came back, one JSON value a line, with its
// name.
'use strict';

const [folder, library, where, protocol, tenant] = process.argv.slice(2);
const load = require('node:module').createRequire(`${folder}/`);
const place = where.startsWith('/') ? { path: where } :
	{ host: where.split(':')[0], port: Number(where.split(':')[1]) };
const version = Number(protocol) || undefined;

// What differs between the two: how to connect, to send any command, a batch of them, to part.
const libraries = {
	ioredis: async () => {
		const Redis = load('ioredis').Redis;
		const client = new Redis({ ...place, ...(version && { protocol: version }) });

		client.on('error', error => say('error event', String(error)));
		return {
			send: (...words) => client.call(...words),
			batch: async commands => (await client.pipeline(
				commands.map(words => ['call', ...words])).exec())
				.map(([error, reply]) => error ? error.message : reply),
			part: () => client.quit(),
			break: () => client.disconnect(),
		};
	},
	redis: async () => {
		const client = load('redis').createClient({ socket: place, ...(version && { RESP: version }) });

		client.on('error', error => say('error event', String(error)));
		await client.connect();
		return {
			send: (...words) => client.sendCommand(words),
			batch: commands => Promise.all(commands.map(
				words => client.sendCommand(words).catch(error => error.message))),
			part: () => client.close(),
			break: () => client.destroy(),
		};
	},
};

// Maps of RESP3 come as objects, as Map or as lists: here they are objects. Of a wait, what it is.
function plain(value) {
	if (value instanceof Map)
		return Object.fromEntries([...value].map(([key, of]) => [key, plain(of)]));
	if (Array.isArray(value))
		return value.map(plain);
	if (typeof value === 'bigint')
		return Number(value);
	return value;
}

function say(name, value) {
	console.log(`${name}: ${JSON.stringify(plain(value))}`);
}

async function main() {
	const client = await libraries[library]();
	const other = await libraries[library]();
	let reply;

	say('first', await client.send('TENANT.HIT', tenant));
	say('batch', (await client.batch([['TENANT.PEEK', tenant], ['TENANT.HIT', tenant],
		['TENANT.HIT', 'bad.tenant']])).map(one => typeof one === 'string' ?
		one.split(':')[0] : one));
	reply = await client.send('TENANT.HIT', tenant);
	say('refused', [reply[0], reply[1] > 990000 && reply[1] <= 1000000, reply[2], reply[3]]);
	say('error', await client.send('TENANT.HIT', 'bad.tenant').then(() => 'none',
		error => error.message.split(':')[0]));
	say('null', await client.send('TENANT.BODYLIMIT', tenant));
	say('preread', await client.send('EDGE.PREREAD', '10.0.0.1', 'hook', 'XFF', '192.0.2.7'));
	say('throttle', await client.send('CL.THROTTLE', `key of ${tenant}`, '15', '30', '60'));
	say('lease', (await other.send('QUEUE.ACQUIRE', `queue-${tenant}`, '10')).slice(0, 4));
	say('no more', (await client.send('QUEUE.ACQUIRE', `queue-${tenant}`, '10')).slice(0, 4));
	other.break();
	for (let tries = 0; tries < 500; tries++) {
		reply = await client.send('QUEUE.ACQUIRE', `queue-${tenant}`, '10');
		if (reply[0])
			break;
		await new Promise(resolve => setTimeout(resolve, 10));
	}
	say('after it broke off', reply.slice(0, 4));
	reply = await client.batch(Array.from({ length: 5000 }, () => ['TENANT.HIT', `many-${tenant}`]));
	say('of five thousand', reply.filter(one => one[0]).length);
	say('info', /^# Sluice/m.test(await client.send('INFO')));
	await client.part();
}

main().catch(error => {
	console.log(`failed: ${error.stack}`);
	process.exit(1);
});
