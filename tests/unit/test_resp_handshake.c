/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What Redis clients greet with, and the words they are answered with. Where nothing else is said,
 * the answers are those of Redis 7, compared byte by byte.
 */
#include "resp_fixture.h"

static struct fixture fixture;

static bool authenticate(void *context, const struct resp_argument *user,
			 const struct resp_argument *password, struct resp_identity *out)
{
	(void)context;
	if (!resp_argument_is(password, "secret") ||
	    (!resp_argument_is(user, "ops") && !resp_argument_is(user, "default")))
		return false;
	snprintf(out->name, sizeof(out->name), "%s", user->data);
	out->scopes = 5;
	return true;
}

static int set_up(void **state)
{
	(void)state;
	fixture_init(&fixture);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_done(&fixture);
	return 0;
}

#define NOAUTH_HELLO                                                                               \
	"-NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO " \
	"<proto> AUTH <user> <pass> option can be used to authenticate the client and select the " \
	"RESP protocol version at the same time\r\n"
#define WRONGPASS "-WRONGPASS invalid username-password pair or user is disabled.\r\n"
#define BAD_NAME "-ERR Client names cannot contain spaces, newlines or special characters.\r\n"
#define LONG_WORD "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" /* 50 */

struct talk {
	const char *name;
	const char *asked;
	const char *answer;
};

static const struct talk open_talks[] = {
	{ "ping", "PING\r\n", "+PONG\r\n" },
	{ "ping with words", "ping \"a b\"\r\n", "$3\r\na b\r\n" },
	{ "ping with too many", "PING a b\r\n",
	  "-ERR wrong number of arguments for 'ping' command\r\n" },
	{ "echo of nothing", "ECHO\r\n", "-ERR wrong number of arguments for 'echo' command\r\n" },
	{ "unknown", "FOO\r\n", "-ERR unknown command 'FOO', with args beginning with: \r\n" },
	{ "unknown with words", "FOO a b\r\n",
	  "-ERR unknown command 'FOO', with args beginning with: 'a' 'b' \r\n" },
	{ "unknown with many words", "FOO " LONG_WORD " " LONG_WORD " " LONG_WORD " z\r\n",
	  "-ERR unknown command 'FOO', with args beginning with: '" LONG_WORD "' '" LONG_WORD
	  "' 'xxxxxxxxxxxxxxxxxxxxxx' \r\n" },
	{ "unknown with line ends", "*2\r\n$3\r\nF\r\n\r\n$2\r\na\n\r\n",
	  "-ERR unknown command 'F  ', with args beginning with: 'a ' \r\n" },
	{ "select", "SELECT 0\r\n", "+OK\r\n" },
	{ "select another", "SELECT 1\r\n", "-ERR DB index is out of range\r\n" },
	{ "select a negative", "SELECT -1\r\n", "-ERR DB index is out of range\r\n" },
	{ "select a word", "SELECT a\r\n", "-ERR value is not an integer or out of range\r\n" },
	{ "hello 4", "HELLO 4\r\n", "-NOPROTO unsupported protocol version\r\n" },
	{ "hello 1", "HELLO 1\r\n", "-NOPROTO unsupported protocol version\r\n" },
	{ "hello of a word", "HELLO x\r\n",
	  "-ERR Protocol version is not an integer or out of range\r\n" },
	{ "hello with an option", "HELLO 3 FOO\r\n",
	  "-ERR Syntax error in HELLO option 'FOO'\r\n" },
	{ "hello with half an option", "HELLO 3 AUTH a\r\n",
	  "-ERR Syntax error in HELLO option 'AUTH'\r\n" },
	{ "hello with a wrong password", "HELLO 3 AUTH a b\r\n", WRONGPASS },
	{ "hello with a wrong name", "HELLO 3 SETNAME \"a b\"\r\n", BAD_NAME },
	{ "auth without passwords", "AUTH x\r\n",
	  "-ERR AUTH <password> called without any password configured for the default user. Are "
	  "you sure your configuration is correct?\r\n" },
	{ "auth of a user without passwords", "AUTH x y\r\n", WRONGPASS },
	{ "auth with too many", "AUTH x y z\r\n", "-ERR syntax error\r\n" },
	{ "client", "CLIENT\r\n", "-ERR wrong number of arguments for 'client' command\r\n" },
	{ "unknown of client", "CLIENT MAINT_NOTIFICATIONS ON\r\n",
	  "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n" },
	{ "too few of client", "CLIENT SETNAME\r\n",
	  "-ERR wrong number of arguments for 'client|setname' command\r\n" },
	{ "a name", "CLIENT GETNAME\r\nCLIENT SETNAME ab\r\nCLIENT GETNAME\r\n",
	  "$-1\r\n+OK\r\n$2\r\nab\r\n" },
	{ "a name taken away", "CLIENT SETNAME ab\r\nCLIENT SETNAME \"\"\r\nCLIENT GETNAME\r\n",
	  "+OK\r\n+OK\r\n$-1\r\n" },
	{ "a wrong name", "CLIENT SETNAME \"a b\"\r\n", BAD_NAME },
	{ "a long name", "CLIENT SETNAME " LONG_WORD LONG_WORD "\r\n",
	  "-ERR Client names cannot be longer than 64 bytes.\r\n" },
	{ "a library", "CLIENT SETINFO LIB-NAME ioredis\r\nCLIENT SETINFO lib-ver 6.0.0\r\n",
	  "+OK\r\n+OK\r\n" },
	{ "a wrong library", "CLIENT SETINFO lib-name \"a b\"\r\n",
	  "-ERR lib-name cannot contain spaces, newlines or special characters.\r\n" },
	{ "what is no library", "CLIENT SETINFO x y\r\n", "-ERR Unrecognized option 'x'\r\n" },
	{ "switches", "CLIENT NO-EVICT on\r\nCLIENT NO-TOUCH OFF\r\nCLIENT NO-EVICT x\r\n",
	  "+OK\r\n+OK\r\n-ERR syntax error\r\n" },
	{ "reply", "CLIENT REPLY x\r\nCLIENT REPLY ON\r\n", "-ERR syntax error\r\n+OK\r\n" },
	{ "a list of none", "CLIENT LIST ID 999999999\r\n", "$0\r\n\r\n" },
	{ "a list of what is none", "CLIENT LIST ID x\r\n", "-ERR Invalid client ID\r\n" },
	{ "a list of a type", "CLIENT LIST TYPE normal\r\n", "-ERR syntax error\r\n" },
	{ "config for benchmarks", "CONFIG GET save\r\nCONFIG GET appendonly\r\n",
	  "*2\r\n$4\r\nsave\r\n$0\r\n\r\n*2\r\n$10\r\nappendonly\r\n$2\r\nno\r\n" },
	{ "config with patterns", "CONFIG GET S?VE ap*only x*\r\n",
	  "*4\r\n$10\r\nappendonly\r\n$2\r\nno\r\n$4\r\nsave\r\n$0\r\n\r\n" },
	{ "config of nothing", "CONFIG GET nosuch\r\n", "*0\r\n" },
	{ "config with many stars", "CONFIG GET *a*a*a*a*a*a*a*b\r\n", "*0\r\n" },
	{ "config set", "CONFIG SET save 1\r\n",
	  "-ERR unknown subcommand 'SET'. Try CONFIG HELP.\r\n" },
	{ "an unknown command's description", "COMMAND INFO nosuch\r\nCOMMAND DOCS nosuch\r\n",
	  "*1\r\n$-1\r\n*0\r\n" },
	{ "a command's description", "COMMAND INFO Test.Who\r\n",
	  "*1\r\n*10\r\n$8\r\ntest.who\r\n:-1\r\n*1\r\n+readonly\r\n:1\r\n:1\r\n:1\r\n*0\r\n*0\r\n"
	  "*0\r\n*0\r\n" },
	{ "what a command is for", "COMMAND DOCS echo test.at-once\r\n",
	  "*4\r\n$4\r\necho\r\n*8\r\n$7\r\nsummary\r\n$20\r\nReturns the "
	  "message.\r\n$5\r\nsince\r\n"
	  "$5\r\n1.0.0\r\n$5\r\ngroup\r\n$6\r\nmodule\r\n$9\r\narguments\r\n*1\r\n*4\r\n$"
	  "4\r\nname\r\n"
	  "$7\r\nmessage\r\n$4\r\ntype\r\n$6\r\nstring\r\n$12\r\ntest.at-once\r\n*6\r\n$"
	  "7\r\nsummary\r\n"
	  "$0\r\n\r\n$5\r\nsince\r\n$5\r\n1.0.0\r\n$5\r\ngroup\r\n$6\r\nmodule\r\n" },
	{ "commands by pattern", "COMMAND LIST FILTERBY PATTERN test.b*\r\n",
	  "*1\r\n$8\r\ntest.big\r\n" },
	{ "commands by module", "COMMAND LIST FILTERBY MODULE x\r\n", "*0\r\n" },
	{ "commands by nothing", "COMMAND LIST x\r\n", "-ERR syntax error\r\n" },
	{ "an unknown section", "INFO nosuch\r\n", "$0\r\n\r\n" },
	{ "a section", "INFO persistence\r\n", "$28\r\n# Persistence\r\nloading:0\r\n\r\n\r\n" },
	{ "reset", "RESET\r\n", "+RESET\r\n" },
	{ "reset with words", "RESET x\r\n",
	  "-ERR wrong number of arguments for 'reset' command\r\n" },
	{ "help", "CONFIG HELP\r\n",
	  "*5\r\n+CONFIG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\r\n"
	  "+GET <pattern> [<pattern> ...]\r\n+    Return what a Redis of this kind would say.\r\n"
	  "+HELP\r\n+    Print this help.\r\n" },
};

/* On a server whose TCP clients must prove who they are. */
static const struct talk closed_talks[] = {
	{ "ping", "PING\r\n", "-NOAUTH Authentication required.\r\n" },
	{ "unknown", "FOO\r\n", "-ERR unknown command 'FOO', with args beginning with: \r\n" },
	{ "hello", "HELLO 3\r\n", NOAUTH_HELLO },
	{ "hello without version", "HELLO\r\n", NOAUTH_HELLO },
	{ "hello with a wrong password", "HELLO 3 AUTH ops x\r\nPING\r\n",
	  WRONGPASS "-NOAUTH Authentication required.\r\n" },
	{ "auth with a wrong password", "AUTH x\r\nPING\r\n",
	  WRONGPASS "-NOAUTH Authentication required.\r\n" },
	{ "auth", "AUTH secret\r\nPING\r\n", "+OK\r\n+PONG\r\n" },
	{ "auth of a user", "AUTH ops secret\r\nPING\r\n", "+OK\r\n+PONG\r\n" },
	{ "auth and reset", "AUTH ops secret\r\nRESET\r\nPING\r\n",
	  "+OK\r\n+RESET\r\n-NOAUTH Authentication required.\r\n" },
	{ "auth, then a wrong one", "AUTH secret\r\nAUTH x\r\nPING\r\n",
	  "+OK\r\n" WRONGPASS "+PONG\r\n" },
	{ "quit", "QUIT\r\n", "+OK\r\n" },
	{ "many arguments", "*11\r\n",
	  "-ERR Protocol error: unauthenticated multibulk length\r\n" },
	{ "a long argument", "*1\r\n$16385\r\n",
	  "-ERR Protocol error: unauthenticated bulk length\r\n" },
	{ "many arguments after auth", "AUTH secret\r\n*11\r\n$3\r\nFOO\r\n*",
	  "+OK\r\n"
	  "-ERR Protocol error: expected '$', got '*'\r\n" },
};

static void check_talk(const struct talk *talk, int fd)
{
	size_t length = strlen(talk->answer);
	char *got = calloc(1, length + 1);

	assert_non_null(got);
	send_text(fd, talk->asked);
	receive(fd, got, length);
	check_row_text(talk, got, talk->answer);
	/* And not a byte more. */
	shutdown(fd, SHUT_WR);
	check_row(talk, receive(fd, got, 1) == 0);
	free(got);
	close(fd);
}

static void answers_in_the_words_of_redis(void **state)
{
	size_t i;

	(void)state;
	fixture_start(&fixture);
	for (i = 0; i < COUNT_OF(open_talks); i++)
		check_talk(&open_talks[i], connect_unix(&fixture));
}

static void asks_strangers_who_they_are(void **state)
{
	int fd;
	size_t i;

	(void)state;
	fixture.options.is_auth_required = true;
	fixture.options.authenticate = authenticate;
	fixture_start(&fixture);
	for (i = 0; i < COUNT_OF(closed_talks); i++)
		check_talk(&closed_talks[i], connect_tcp(&fixture));
	/* Not on the Unix socket, where the peer is known. */
	fd = connect_unix(&fixture);
	ask(fd, "PING\r\nCLIENT SETNAME me\r\nCLIENT LIST ID 1\r\n", "+PONG\r\n+OK\r\n$0\r\n\r\n");
	close(fd);
}

/* The server's text from here on; cut off what it begins with up to the length. */
static void read_bulk(int fd, char *out, size_t room)
{
	char header[32] = "";
	size_t length = 0;

	while (length == 0 || header[length - 1] != '\n') {
		assert_true(length < sizeof(header) - 1);
		assert_int_equal(receive(fd, header + length++, 1), 1);
	}
	assert_int_equal(header[0], '$');
	length = (size_t)atoi(header + 1);
	assert_true(length + 2 < room);
	assert_int_equal(receive(fd, out, length + 2), length + 2);
	out[length] = '\0';
}

static void greets_in_both_versions(void **state)
{
	static const char second[] =
		"*14\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n"
		"$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
		"$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*1\r\n*4\r\n$4\r\nname\r\n"
		"$6\r\nsluice\r\n$3\r\nver\r\n:10203\r\n";
	static const char third[] =
		"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.0\r\n"
		"$5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"
		"$4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*1\r\n%2\r\n$4\r\nname\r\n"
		"$6\r\nsluice\r\n$3\r\nver\r\n:10203\r\n";
	int fd;

	(void)state;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	ask(fd, "HELLO\r\n", second);
	ask(fd, "hello 3\r\n", third);
	ask(fd, "CLIENT GETNAME\r\nCONFIG GET save\r\n", "_\r\n%1\r\n$4\r\nsave\r\n$0\r\n\r\n");
	ask(fd, "HELLO\r\n", third);
	ask(fd, "HELLO 2 SETNAME me\r\n", second);
	ask(fd, "CLIENT GETNAME\r\nCLIENT ID\r\n", "$2\r\nme\r\n:1\r\n");
	ask(fd, "HELLO 3\r\n", third);
	ask(fd, "RESET\r\nCLIENT GETNAME\r\n", "+RESET\r\n$-1\r\n");
	close(fd);
}

static void tells_commands_who_asks(void **state)
{
	char got[256] = "";
	int fd;

	(void)state;
	fixture.options.workers = 1;
	fixture.options.authenticate = authenticate;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	snprintf(got, sizeof(got), "*6\r\n:%u\r\n:%d\r\n:0\r\n:0\r\n:0\r\n:1\r\n", getuid(),
		 getpid());
	ask(fd, "TEST.WHO\r\n", got);
	close(fd);
	fd = connect_tcp(&fixture);
	ask(fd, "TEST.WHO\r\n", "*6\r\n:4294967295\r\n:0\r\n:0\r\n:0\r\n:0\r\n:2\r\n");
	/* Who else is there is not for strangers. */
	ask(fd, "CLIENT LIST\r\n", "-NOAUTH Authentication required.\r\n");
	ask(fd, "AUTH ops secret\r\nTEST.WHO\r\n",
	    "+OK\r\n*6\r\n:4294967295\r\n:0\r\n:1\r\n:5\r\n:0\r\n:2\r\n");
	send_text(fd, "CLIENT LIST\r\n");
	read_bulk(fd, got, sizeof(got));
	assert_non_null(strstr(got, "id=2 addr=127.0.0.1:"));
	assert_non_null(strstr(got, " user=ops resp=2 "));
	close(fd);
}

static void lists_the_clients_of_all_workers(void **state)
{
	static char got[4096];
	int fd[4], i, lines = 0;

	(void)state;
	fixture.options.workers = 4;
	fixture_start(&fixture);
	for (i = 0; i < 4; i++) {
		fd[i] = connect_unix(&fixture);
		ask(fd[i], "CLIENT SETINFO LIB-NAME test\r\n", "+OK\r\n");
	}
	send_text(fd[0], "CLIENT LIST\r\n");
	read_bulk(fd[0], got, sizeof(got));
	for (i = 0; got[i]; i++)
		lines += got[i] == '\n';
	assert_int_equal(lines, 4);
	assert_non_null(strstr(got, "lib-name=test"));
	send_text(fd[0], "CLIENT LIST ID 2 3\r\n");
	read_bulk(fd[0], got, sizeof(got));
	assert_null(strstr(got, "id=1 "));
	assert_non_null(strstr(got, "id=2 "));
	assert_non_null(strstr(got, "id=3 "));
	send_text(fd[3], "CLIENT INFO\r\n");
	read_bulk(fd[3], got, sizeof(got));
	assert_memory_equal(got, "id=4 ", 5);
	for (i = 0; i < 4; i++)
		close(fd[i]);
}

static void print_more(void *context, const char *section, FILE *out)
{
	(void)context;
	if (!*section || strcmp(section, "tenants") == 0)
		fputs("# Tenants\r\ncount:3\r\n", out);
}

static void informs_in_sections(void **state)
{
	static char got[4096];
	int fd;

	(void)state;
	fixture.options.info = print_more;
	fixture_start(&fixture);
	fd = connect_unix(&fixture);
	send_text(fd, "INFO\r\n");
	read_bulk(fd, got, sizeof(got));
	assert_non_null(strstr(got, "\r\nredis_version:7.2.0\r\nredis_mode:standalone\r\n"));
	assert_non_null(strstr(got, "\r\nsluice_version:1.2.3\r\n"));
	assert_non_null(strstr(got, "\r\nloading:0\r\n"));
	assert_non_null(strstr(got, "\r\nrole:master\r\n"));
	assert_non_null(strstr(got, "\r\nconnected_clients:1\r\n"));
	assert_non_null(strstr(got, "# Tenants\r\ncount:3\r\n"));
	ask(fd, "INFO Tenants\r\n", "$20\r\n# Tenants\r\ncount:3\r\n\r\n");
	send_text(fd, "INFO clients everything\r\n");
	read_bulk(fd, got, sizeof(got));
	assert_non_null(strstr(got, "# Server"));
	close(fd);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(answers_in_the_words_of_redis),    TEST(asks_strangers_who_they_are),
		TEST(greets_in_both_versions),          TEST(tells_commands_who_asks),
		TEST(lists_the_clients_of_all_workers), TEST(informs_in_sections),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
